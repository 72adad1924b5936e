#!/usr/bin/env python3
"""Checks tests/allowed_skips.py against small records of ctest and lists of allowed names."""
import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest
import xml.sax.saxutils

SCRIPT = pathlib.Path(__file__).with_name("allowed_skips.py")


def load():
    spec = importlib.util.spec_from_file_location("allowed_skips", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def case(name, output="", status="run", inside=""):
    return (f'<testcase name="{name}" classname="{name}" time="1" status="{status}">{inside}'
            f"<system-out>{xml.sax.saxutils.escape(output)}</system-out></testcase>")


class AllowedSkips(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-skips-")
        self.addCleanup(folder.cleanup)
        self.record = pathlib.Path(folder.name) / "record.xml"
        self.script = load()
        self.script.ALLOWED = pathlib.Path(folder.name) / "allowed.txt"

    def write(self, *cases):
        self.record.write_text(f'<?xml version="1.0"?>\n<testsuite name="all">{"".join(cases)}</testsuite>\n', encoding="utf-8")

    def skipped(self, *cases):
        self.write(*cases)
        return self.script.skipped(self.script.cases_of(self.record))

    def result(self, allowed, *cases):
        self.write(*cases)
        self.script.ALLOWED.write_text(allowed, encoding="utf-8")
        return self.run_script()

    def run_script(self):
        """The exit code and the lines that are printed."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = self.script.main(self.record)
        return code, said.getvalue().splitlines()

    def test_a_test_that_ctest_did_not_run_is_skipped(self):
        self.assertEqual(self.skipped(case("a"), case("b", status="notrun"), case("c", status="disabled"), case("d", status="fail"),
                                      case("e", inside='<skipped message="SKIP_RETURN_CODE=77"/>')), {"b", "c", "e"})

    def test_each_test_of_ctest_counts_once(self):
        self.write(case("a"), case("b", status="fail", inside="<failure/>"), case("c", inside='<skipped message="x"/>'), case("d", status="notrun"),
                   case("e"), case("f", "[  SKIPPED ] S.T (0 ms)\n"))
        self.script.ALLOWED.write_text("", encoding="utf-8")
        counts = self.record.with_suffix(".counts")
        with contextlib.redirect_stdout(io.StringIO()):
            self.script.main(self.record, counts)
        self.assertEqual(counts.read_text(encoding="utf-8"), "3 1 2\n")

    def test_a_skipped_test_of_googletest_is_one_part(self):
        output = ("[ RUN      ] A/S.T/x\na.cc:1: Skipped\n[  SKIPPED ] A/S.T/x (0 ms)\n[       OK ] A/S.U/x (3 ms)\n"
                  "[==========] 2 tests from 1 test suite ran. (3 ms total)\n[  PASSED  ] 1 test.\n"
                  "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A/S.T/x\n")
        self.assertEqual(self.skipped(case("a_test", output)), {"a_test/A/S.T/x"})

    def test_the_number_of_skipped_tests_is_no_part(self):
        self.assertEqual(self.skipped(case("a_test", "[  SKIPPED ] 2 tests, listed below:\n")), set())

    def test_parts_that_unittest_names_stand_for_the_whole_test(self):
        output = ("test_x (m.C.test_x) ... skipped 'r'\ntest_y (m.C.test_y) ... ok\n"
                  "test_z (m.C.test_z)\nSays what z does. ... skipped 'of another reason'\ntest_u (m.C.test_u)\nSays what u does. ... ok\n"
                  "\n-----\nRan 4 tests in 0.1s\n\nOK (skipped=2)\n")
        shown = '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>'
        self.assertEqual(self.skipped(case("a_test", output, "notrun", shown)), {"a_test/test_x", "a_test/test_z"})

    def test_parts_that_unittest_only_counts_are_the_whole_test(self):
        self.assertEqual(self.skipped(case("a_test", "..s\nOK (skipped=1)\n")), {"a_test"})
        output = "test_x (m.C.test_x) ... skipped 'r'\n\nOK (skipped=2, expected failures=1)\n"
        self.assertEqual(self.skipped(case("a_test", output)), {"a_test", "a_test/test_x"})

    def test_a_part_is_allowed_in_every_shard_by_its_own_name_only(self):
        part = case("tasks_test_2", "[  SKIPPED ] S.T (0 ms)\n")
        self.assertEqual(self.result("tasks_test/S.T\ta reason\n", part), (0, ["skipped, as allowed: tasks_test_2/S.T"]))
        for allowed in ("tasks_test\ta reason\n", "tasks_test/S.U\ta reason\n", "tasks_test_3/S.T\ta reason\n"):
            self.assertEqual(self.result(allowed, part),
                             (1, ["SKIPPED: tasks_test_2/S.T; tests/allowed_skips.txt does not allow it"]), allowed)
        numbered = case("tasks_test", "[  SKIPPED ] S.T_2 (0 ms)\n")
        self.assertEqual(self.result("tasks_test/S.T\ta reason\n", numbered)[0], 1)

    def test_only_what_the_list_does_not_name_fails(self):
        allowed = "# a comment\nb\ta reason\n\nc\ta reason\n"
        self.assertEqual(self.result(allowed, case("a")), (0, []))
        self.assertEqual(self.result(allowed, case("b", status="notrun")), (0, ["skipped, as allowed: b"]))
        self.assertEqual(self.result(allowed, case("b", status="notrun"), case("d", status="notrun")),
                         (1, ["skipped, as allowed: b", "SKIPPED: d; tests/allowed_skips.txt does not allow it"]))

    def test_a_line_of_the_list_without_a_tab_fails(self):
        self.assertEqual(self.result("a a reason\n", case("b")), (1, ['allowed_skips.py: allowed.txt: no tab in "a a reason"']))

    def test_a_record_without_tests_fails(self):
        self.assertEqual(self.result(""), (1, [f"allowed_skips.py: {self.record} has no tests"]))
        self.record.write_text("<testsuite", encoding="utf-8")
        self.assertEqual(self.run_script()[0], 1)
        self.record.unlink()
        self.assertEqual(self.run_script()[0], 1)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
