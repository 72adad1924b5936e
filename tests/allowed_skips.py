#!/usr/bin/env python3
"""Fails when a test was skipped that tests/allowed_skips.txt does not name.

usage: allowed_skips.py RECORD, the file that ctest --output-junit wrote.

A test of ctest counts, and so does a part of it: a test of GoogleTest ("[  SKIPPED ] Suite.Name") and one of unittest ("name ... skipped
'reason'"). Such a part is called CTEST-NAME/PART.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree

ALLOWED = pathlib.Path(__file__).with_name("allowed_skips.txt")
PARTS = (re.compile(r"^\[  SKIPPED \] (\w[\w/]*\.[\w/]+)(?: \(\d+ ms\))?$", re.M), re.compile(r"^(test\w+) .*\.\.\. skipped ", re.M))


def allowed(text):
    """{name: reason} of lines NAME<TAB>REASON; '#' begins a comment."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return dict(line.split("\t", 1) for line in lines)


def skipped(record):
    """Names of the skipped tests and parts in ctest's record."""
    names = set()
    for case in xml.etree.ElementTree.parse(record).iter("testcase"):
        name = case.get("name")
        if case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None:
            names.add(name)
        output = case.findtext("system-out") or ""
        if re.search(r"^OK \(skipped=", output, re.M):
            names.add(name)
        names.update(f"{name}/{part}" for pattern in PARTS for part in pattern.findall(output))
    return names


def main():
    names = skipped(sys.argv[1])
    reasons = allowed(ALLOWED.read_text(encoding="utf-8"))
    # A part may be allowed in every shard of a program: tasks_test_2/Suite.Name as tasks_test/Suite.Name.
    wrong = sorted(name for name in names if name not in reasons and re.sub(r"_\d+(?=/|$)", "", name) not in reasons)
    for name in sorted(names - set(wrong)):
        print(f"skipped, as allowed: {name}")
    for name in wrong:
        print(f"SKIPPED: {name}; tests/allowed_skips.txt does not allow it")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0
