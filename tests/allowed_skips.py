#!/usr/bin/env python3
"""Fails when a test was skipped that tests/allowed_skips.txt does not name, or when no test was recorded.

usage: allowed_skips.py RECORD, the file that ctest --output-junit wrote.

A test of ctest counts, and so does a part of it: a test of GoogleTest ("[  SKIPPED ] Suite.Name") and one of unittest ("name ... skipped
'reason'"). Such a part is called CTEST-NAME/PART. When unittest names every test that it skipped (verbosity=2), these stand for the whole
test, which ctest also shows as skipped.
"""
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


def skipped(record):
    """Names of the skipped tests and parts in ctest's record."""
    cases = list(xml.etree.ElementTree.parse(record).iter("testcase"))
    if not cases:
        raise ValueError(f"{record} has no tests")
    names = set()
    for case in cases:
        name, output = case.get("name"), case.findtext("system-out") or ""
        parts, count = UNITTEST.findall(output), UNITTEST_COUNT.search(output)
        whole = count or case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None
        if whole and not (count and len(parts) == int(count[1])):
            names.add(name)
        names.update(f"{name}/{part}" for part in [*parts, *GOOGLETEST.findall(output)])
    return names


def main(record):
    try:
        names, reasons = skipped(record), allowed(ALLOWED.read_text(encoding="utf-8"))
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        print(f"allowed_skips.py: {error}")
        return 1
    # A part may be allowed in every shard of a program: tasks_test_2/Suite.Name as tasks_test/Suite.Name.
    wrong = sorted(name for name in names if name not in reasons and re.sub(r"^([^/]+)_\d+(?=/|$)", r"\1", name) not in reasons)
    for name in sorted(names - set(wrong)):
        print(f"skipped, as allowed: {name}")
    for name in wrong:
        print(f"SKIPPED: {name}; tests/allowed_skips.txt does not allow it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
# SPDX-License-Identifier: Apache-2.0
