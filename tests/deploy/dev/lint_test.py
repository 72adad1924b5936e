#!/usr/bin/env python3
"""Checks which sources deploy/dev/lint checks, in a small repository, with a clang-tidy that only finds the word BAD."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "tests" / "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

LINT = SOURCE / "deploy" / "dev" / "lint"
# Logs the source. The file `edit`, if there is one, is a command that runs during the check; `code` has an exit code.
CLANG_TIDY = """#!/bin/sh
[ "$1" = --version ] && { cat "$FAKE/version"; exit; }
for source; do :; done
echo "$*" >>"$FAKE/calls"
[ ! -e "$FAKE/edit" ] || . "$FAKE/edit"
[ ! -e "$FAKE/code" ] || exit "$(cat "$FAKE/code")"
if grep -n BAD "$source"; then
  echo "$source:1:1: error: the word BAD"
  exit 1
fi
"""
TREE = {
    ".clang-tidy": "Checks: '*'\n",
    ".gitignore": "/build/\n",
    "a.cc": '#include "common/h.h"\n',
    "b.cc": '#include "datacom/v1/x.pb.h"\nint b;\n',
    "common/h.h": '#include "common/inner.h"\n',
    "common/inner.h": "int inner;\n",
    "proto/datacom/v1/x.proto": 'import "datacom/v1/y.proto";\n',
    "proto/datacom/v1/y.proto": "// y\n",
    "build/dev/made.cc": "int BAD;\n",
}


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-lint-")
        self.addCleanup(folder.cleanup)
        top = pathlib.Path(folder.name).resolve()
        self.root, self.fake, self.cache = top / "tree", top / "fake", top / "cache"
        self.fake.mkdir()
        for name, text in (("clang-tidy", CLANG_TIDY), ("protoc", "#!/bin/sh\necho 3\n")):
            (self.fake / name).write_text(text, encoding="utf-8")
            (self.fake / name).chmod(0o755)
        (self.fake / "version").write_text("clang 1\n", encoding="utf-8")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DATACOM_"))}
        self.environment.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", FAKE=str(self.fake), DATACOM_LINT_CACHE=str(self.cache),
                                PATH=f"{self.fake}:{os.environ['PATH']}")
        for name, text in TREE.items():
            self.write(name, text)
        (self.root / "deploy" / "dev").mkdir(parents=True)
        shutil.copy2(LINT, self.root / "deploy" / "dev" / "lint")
        self.write_commands("a.cc", "b.cc", "build/dev/made.cc")
        self.git("init", "--quiet")
        self.git("add", "--all")
        self.git("-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "-m", "Begin")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def write_commands(self, *sources, options=("-O2",)):
        commands = [{"directory": str(self.root), "file": str(self.root / source), "command": f"clang++ {option} -c {self.root / source}"}
                    for source in sources for option in options]
        self.write("build/dev/compile_commands.json", json.dumps(commands))

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.root, env=self.environment, check=True)

    def lint(self, *arguments, code=0, jobs=1):
        """Runs lint, which must end with `code`. Returns the sources that were checked, in their order, and what lint printed."""
        calls = self.fake / "calls"
        calls.write_text("", encoding="utf-8")
        command = [str(self.root / "deploy" / "dev" / "lint"), str(self.root / "build" / "dev"), "--jobs", str(jobs), *arguments]
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        checked = [line.split()[-1] for line in calls.read_text(encoding="utf-8").splitlines()]
        return [str(pathlib.Path(source).relative_to(self.root)) for source in checked], result.stdout + result.stderr

    def checked(self, *arguments, **options):
        return self.lint(*arguments, **options)[0]

    def test_a_finding_is_printed_with_its_source_and_found_again(self):
        self.write("a.cc", "int BAD;\n")
        checked, said = self.lint(code=1)
        self.assertEqual(checked, ["a.cc", "b.cc"])
        self.assertIn("a.cc:1:1: error: the word BAD\n", said)
        self.assertIn("\nlint: 1 sources have findings: a.cc\n", said)
        self.assertEqual(self.checked(code=1), ["a.cc"])
        self.write("a.cc", "int a;\n")
        self.assertEqual(self.checked(), ["a.cc"])

    def test_what_has_passed_is_not_checked_again(self):
        self.assertEqual(self.checked(), ["a.cc", "b.cc"])
        checked, said = self.lint()
        self.assertEqual(checked, [])
        self.assertIn("lint: 2 sources, 2 of them have passed before\n", said)

    def test_clang_tidy_is_given_the_build_folder_and_takes_warnings_as_errors(self):
        self.lint()
        calls = (self.fake / "calls").read_text(encoding="utf-8").splitlines()
        self.assertEqual(calls[0], f"--quiet --warnings-as-errors=* -p {self.root}/build/dev {self.root}/a.cc")

    def test_several_sources_are_checked_at_the_same_time(self):
        # Each of the two checks waits until the other one has begun.
        wait = f"timeout {PATIENCE} sh -c"
        (self.fake / "edit").write_text(f'''if mkfifo "$FAKE/first" 2>/dev/null
            then {wait} 'cat <"$FAKE/first"' || exit 9
            else {wait} 'echo >"$FAKE/first"' || exit 9
            fi\n''', encoding="utf-8")
        self.assertEqual(sorted(self.checked(jobs=2)), ["a.cc", "b.cc"])

    def test_a_changed_header_rechecks_only_what_includes_it(self):
        self.lint()
        self.write("common/inner.h", "int changed;\n")
        self.assertEqual(self.checked(), ["a.cc"])
        self.assertEqual(self.checked(), [])

    def test_a_changed_proto_rechecks_what_includes_its_header(self):
        self.lint()
        self.write("proto/datacom/v1/y.proto", "// changed\n")
        self.assertEqual(self.checked(), ["b.cc"])

    def test_another_configuration_script_or_version_rechecks_everything(self):
        self.lint()
        for name in (".clang-tidy", "deploy/dev/lint", "build/mujoco/version"):
            path = self.root / name
            self.write(name, (path.read_text(encoding="utf-8") if path.exists() else "") + "# changed\n")
            self.assertEqual(self.checked(), ["a.cc", "b.cc"], name)
        (self.fake / "version").write_text("clang 2\n  Host CPU: one\n", encoding="utf-8")
        self.assertEqual(self.checked(), ["a.cc", "b.cc"])
        (self.fake / "version").write_text("clang 2\n  Host CPU: another\n", encoding="utf-8")
        self.assertEqual(self.checked(), [])
        (self.fake / "protoc").write_text("#!/bin/sh\necho 4\n", encoding="utf-8")
        self.assertEqual(self.checked(), ["a.cc", "b.cc"])

    def test_every_compile_command_of_a_source_counts(self):
        self.write_commands("a.cc", "b.cc", options=("-O2", "-O3"))
        self.assertEqual(self.checked(), ["a.cc", "b.cc"])
        self.write_commands("a.cc", "b.cc", options=("-O3", "-O2"))
        self.assertEqual(self.checked(), [])
        self.write_commands("a.cc", "b.cc", options=("-O1", "-O2"))
        self.assertEqual(self.checked(), ["a.cc", "b.cc"])

    def test_with_a_base_what_differs_comes_first_then_what_includes_it(self):
        self.write("b.cc", "int other;\n")
        self.write("common/h.h", "int h;\n")
        self.write("c.cc", "int untracked;\n")
        self.write("d.cc", "int committed;\n")
        self.write_commands("a.cc", "b.cc", "c.cc", "d.cc")
        self.git("add", "d.cc")
        self.git("-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "-m", "Add")
        self.assertEqual(self.checked("--base", "HEAD"), ["b.cc", "c.cc", "a.cc"])
        self.assertEqual(self.checked("--base", "HEAD~1"), ["d.cc"])

    def test_with_a_base_that_does_not_differ_nothing_is_checked(self):
        self.assertEqual(self.checked("--base", "HEAD"), [])

    def test_with_a_base_every_source_is_checked_when_the_configuration_or_the_build_differs(self):
        for name in (".clang-tidy", "CMakePresets.json", "common/CMakeLists.txt", "deploy/dev/cmake/Flags.cmake", "deploy/dev/lint"):
            path = self.root / name
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            shutil.rmtree(self.cache, ignore_errors=True)
            self.write(name, before + "# changed\n")
            self.assertEqual(self.checked("--base", "HEAD"), ["a.cc", "b.cc"], name)
            self.assertEqual(self.checked("--base", "HEAD"), [], name)
            if before:
                self.write(name, before)
            else:
                path.unlink()

    def test_sources_that_no_time_is_left_for_are_named_and_do_not_fail(self):
        self.write("a.cc", "int BAD;\n")
        checked, said = self.lint("--seconds", "-1")
        self.assertEqual(checked, [])
        self.assertIn("lint: 2 sources NOT CHECKED, because -1 s are over: a.cc b.cc\n", said)
        self.assertEqual(self.checked(code=1), ["a.cc", "b.cc"])

    def test_what_was_left_out_is_checked_before_what_had_findings(self):
        self.write("a.cc", "int BAD;\n")
        self.write("c.cc", "int BAD;\n")
        self.write_commands("a.cc")
        self.lint(code=1)
        self.write_commands("a.cc", "b.cc", "c.cc")
        self.assertEqual(self.checked(code=1), ["b.cc", "c.cc", "a.cc"])

    def test_a_known_finding_still_fails_when_no_time_is_left(self):
        self.write("a.cc", "int BAD;\n")
        self.lint(code=1)
        checked, said = self.lint("--seconds", "-1", code=1)
        self.assertEqual(checked, [])
        self.assertIn("error: the word BAD\n", said)
        self.assertIn("lint: 1 sources have findings: a.cc\n", said)

    def test_a_file_that_changes_during_the_check_is_checked_again(self):
        (self.fake / "edit").write_text(f'echo "int later;" >>{self.root}/common/inner.h\n', encoding="utf-8")
        checked, said = self.lint()
        self.assertEqual(checked, ["a.cc", "b.cc"])
        self.assertIn("lint: a.cc, or a file that it includes, changed during this run", said)
        (self.fake / "edit").unlink()
        self.write("common/inner.h", TREE["common/inner.h"])
        self.assertEqual(self.checked(), ["a.cc"])

    def test_a_result_that_cannot_be_kept_counts(self):
        self.write("a.cc", "int BAD;\n")
        (self.fake / "edit").write_text('rm -rf "$DATACOM_LINT_CACHE"\n', encoding="utf-8")
        checked, said = self.lint(code=1)
        self.assertEqual(checked, ["a.cc", "b.cc"])
        self.assertIn("lint: the result of b.cc counts, but is not kept: ", said)
        self.assertIn("lint: 1 sources have findings: a.cc\n", said)
        self.assertIn("lint: 1 sources passed in ", said)

    def test_what_cannot_be_checked_is_no_finding(self):
        (self.fake / "code").write_text("1\n", encoding="utf-8")
        self.assertIn("lint: 2 sources could not be checked: a.cc b.cc\n", self.lint(code=3)[1])
        (self.fake / "code").write_text("139\n", encoding="utf-8")
        self.assertIn("lint: clang-tidy ended with 139 for a.cc\n", self.lint(code=3)[1])
        (self.fake / "code").unlink()
        missing = "a.cc:1:10: error: 'absl/x.h' file not found [clang-diagnostic-error]"
        (self.fake / "edit").write_text(f'echo "{missing}"\nexit 1\n', encoding="utf-8")
        self.assertIn(f"{missing}\n", self.lint(code=3)[1])
        self.assertEqual(self.checked(code=3), ["a.cc", "b.cc"])
        (self.fake / "edit").unlink()
        self.assertEqual(self.checked("--base", "no-such-revision", code=3), [])
        (self.root / "build" / "dev" / "compile_commands.json").unlink()
        self.assertEqual(self.checked(code=3), [])
        (self.fake / "protoc").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
        self.assertIn("protoc", self.lint(code=3)[1])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
