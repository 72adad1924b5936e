#!/usr/bin/env python3
"""Fails when a test was skipped that tests/allowed_skips.txt does not name, or when no test was recorded.

usage: allowed_skips.py RECORD [--counts FILE]. RECORD is the file that ctest --output-junit wrote. FILE receives three numbers: the tests of
ctest that passed, that failed and that were skipped.

A test of ctest counts, and so does a part of it: a test of GoogleTest ("[  SKIPPED ] Suite.Name") and one of unittest ("name ... skipped
'reason'"). Such a part is called CTEST-NAME/PART. When unittest names every test that it skipped (verbosity=2), these stand for the whole
test, which ctest also shows as skipped.
"""
import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree

ALLOWED = pathlib.Path(__file__).with_name("allowed_skips.txt")
GOOGLETEST = re.compile(r"^\[  SKIPPED \] (\w[\w/]*\.[\w/]+)(?: \(\d+ ms\))?$", re.M)
UNITTEST = re.compile(r"^(\w+) \([\w.]+\)(?:\n.*)? \.\.\. skipped ", re.M)  # the second line is that of a docstring
UNITTEST_COUNT = re.compile(r"^OK \(skipped=(\d+)", re.M)


def allowed(text):
    """{name: reason} of lines NAME<TAB>REASON; '#' begins a comment."""
    reasons = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            name, tab, reason = line.partition("\t")
            if not tab:
                raise ValueError(f'{ALLOWED.name}: no tab in "{line}"')
            reasons[name] = reason
    return reasons


def cases_of(record):
    cases = list(xml.etree.ElementTree.parse(record).iter("testcase"))
    if not cases:
        raise ValueError(f"{record} has no tests")
    return cases


def counts(cases):
    """How many tests of ctest passed, failed and were skipped."""
    skips = sum(case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None for case in cases)
    failures = sum(case.get("status") == "fail" or case.find("failure") is not None for case in cases)
    return len(cases) - failures - skips, failures, skips


def skipped(cases):
    """Names of the skipped tests and parts of ctest's record."""
    names = set()
    for case in cases:
        name, output = case.get("name"), case.findtext("system-out") or ""
        parts, count = UNITTEST.findall(output), UNITTEST_COUNT.search(output)
        whole = count or case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None
        if whole and not (count and len(parts) == int(count[1])):
            names.add(name)
        names.update(f"{name}/{part}" for part in [*parts, *GOOGLETEST.findall(output)])
    return names


def main(record, counts_file=None):
    try:
        cases = cases_of(record)
        names, reasons = skipped(cases), allowed(ALLOWED.read_text(encoding="utf-8"))
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        print(f"allowed_skips.py: {error}")
        return 1
    if counts_file is not None:
        counts_file.write_text("{} {} {}\n".format(*counts(cases)), encoding="utf-8")
    # A part may be allowed in every shard of a program: tasks_test_2/Suite.Name as tasks_test/Suite.Name.
    wrong = sorted(name for name in names if name not in reasons and re.sub(r"^([^/]+)_\d+(?=/|$)", r"\1", name) not in reasons)
    for name in sorted(names - set(wrong)):
        print(f"skipped, as allowed: {name}")
    for name in wrong:
        print(f"SKIPPED: {name}; tests/allowed_skips.txt does not allow it")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=pathlib.Path)
    parser.add_argument("--counts", type=pathlib.Path)
    flags = parser.parse_args()
    sys.exit(main(flags.record, flags.counts))
# SPDX-License-Identifier: Apache-2.0
