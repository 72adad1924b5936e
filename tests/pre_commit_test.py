#!/usr/bin/env python3
"""Checks .githooks/pre-commit in a small repository, with a clang-format that only replaces tabs by spaces."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent


class PreCommit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-hook-")
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.programs = pathlib.Path(folder.name) / "programs"
        self.programs.mkdir()
        self.write_program("clang-format", "expand -t 2")
        self.write("tests/structure_test.py", "")
        self.git("init", "--quiet")
        self.git("config", "core.hooksPath", str(SOURCE / ".githooks"))
        self.git("config", "user.name", "test")
        self.git("config", "user.email", "test@example.org")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write_program(self, name, text):
        path = self.programs / name
        path.write_text("#!/bin/sh\n" + text + "\n", encoding="utf-8")
        path.chmod(0o755)

    def git(self, *arguments, check=True):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", PATH=f"{self.programs}:{environment['PATH']}")
        return subprocess.run(["git", *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=check)

    def commit(self, files):
        for name, text in files.items():
            self.write(name, text)
        self.git("add", "--all")
        return self.git("commit", "--quiet", "-m", "Change", check=False)

    def test_a_formatted_file_is_committed(self):
        result = self.commit({"a.cc": "int a;\n"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_an_unformatted_file_is_refused_by_name(self):
        result = self.commit({"a.cc": "int a;\n", "b.cc": "\tint b;\n"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("./datacom format and stage again: b.cc\n", result.stderr)

    def test_what_is_staged_counts_and_not_the_file_on_the_disk(self):
        self.write("a.cc", "int a;\n")
        self.git("add", "--all")
        self.write("a.cc", "\tint a;\n")
        self.assertEqual(self.git("commit", "--quiet", "-m", "Change", check=False).returncode, 0)

    def test_a_broken_structure_is_refused_with_what_the_check_says(self):
        result = self.commit({"tests/structure_test.py": "raise SystemExit('too long')\n"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("too long", result.stderr)

    def test_the_checks_that_it_chooses_exist(self):
        words = (SOURCE / ".githooks" / "pre-commit").read_text(encoding="utf-8").split()
        chosen = [words[place + 1] for place, word in enumerate(words) if word == "-k"]
        text = (SOURCE / "tests" / "structure_test.py").read_text(encoding="utf-8")
        self.assertGreater(len(chosen), 5)
        for name in chosen:
            self.assertIn(f"class {name}(unittest.TestCase)", text)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
