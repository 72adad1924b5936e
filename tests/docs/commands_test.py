#!/usr/bin/env python3
"""Runs the commands of pages: each block in the page's order, in a copy of the checkout, with small sizes (small_datacom.py).

  commands_test.py BUILD [PAGE...]   pages relative to the tree; default: all, several at a time

A page has one shell and one Python, so that folders, variables and names last from block to block. Exit code 77: a page needs Python packages,
and PyPI cannot be reached; all others were right.
"""
import concurrent.futures
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pages

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "testing"))
from package_python import package_python  # noqa: E402  the path comes first
from patience import PATIENCE  # noqa: E402
from skipped import SKIPPED  # noqa: E402

LARGE = 100_000  # bytes of a file that the copy of the checkout only links
TAIL = 12  # lines of output of a failed command

# Reports on file descriptor 9: "at LINE" before each command, "failed LINE CODE" with the last lines of its output, "done FOLDER" after a block.
SHELL = f"""
set -ET -o pipefail
fail() {{ {{ echo "failed $1 $2"; tail -n {TAIL} "$LOG"; echo end; }} >&9; }}
trap 'fail "$LINENO" "$?"' ERR
trap '[[ "$BASH_COMMAND" == fail* || "${{FUNCNAME[0]:-}}" == fail || "$at" == "$LINENO" ]] || {{ at=$LINENO; echo "at $at" >&9; : >"$LOG"; }}' DEBUG
"""
PYTHON = """
import os, sys, traceback
report = os.fdopen(9, "w", buffering=1)
for path in sys.stdin:
    folder, path = path.rstrip("\\n").split("\\t")
    os.chdir(folder)
    try:
        exec(compile(open(path).read(), path, "exec"), globals())
    except BaseException as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path] or [getattr(error, "lineno", 0)]
        print("failed", lines[-1], 1, file=report)
        print("".join(traceback.format_exception(type(error), error, error.__traceback__.tb_next)[-TAIL:]), "end", sep="", file=report)
    print("done", os.getcwd(), file=report)
""".replace("TAIL", str(TAIL))


def copy_of_checkout(folder):
    """A copy of the tree in which commands may write. Large files, which are records of results, are links."""
    for source, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ("build", "runs", ".git", "__pycache__")]
        target = os.path.join(folder, os.path.relpath(source, ROOT))
        os.makedirs(target, exist_ok=True)
        for name in names:
            file = os.path.join(source, name)
            if os.path.getsize(file) > LARGE:
                os.symlink(file, os.path.join(target, name))
            else:
                shutil.copy(file, target)


def link_build(build, folder, python):
    """Makes build/release in the copy: `build`, but its bin/datacom is small_datacom.py. Returns a folder for the path: datacom, python, python3."""
    release, commands = os.path.join(folder, "build", "release"), os.path.join(folder, "build", "commands")
    os.makedirs(os.path.join(release, "bin"))
    os.makedirs(commands)
    for name in os.listdir(build):
        if name != "bin":
            os.symlink(os.path.join(build, name), os.path.join(release, name))
    for name in os.listdir(os.path.join(build, "bin")):
        os.symlink(os.path.join(build, "bin", name), os.path.join(release, "bin", name))
    os.unlink(os.path.join(release, "bin", "datacom"))
    small = [sys.executable, os.path.join(HERE, "small_datacom.py"), os.path.join(build, "bin")]
    package = os.path.join(folder, "deploy", "python")
    for file, line in ((os.path.join(release, "bin", "datacom"), shlex.join([*small, "datacom"])),
                       (os.path.join(commands, "datacom"), shlex.join([*small, "datacom"])),
                       (os.path.join(folder, "datacom"), shlex.join([*small, "./datacom"])),
                       (os.path.join(commands, "python"), f'env PYTHONPATH="{package}:$PYTHONPATH" {python}'),
                       (os.path.join(commands, "python3"), f'env PYTHONPATH="{package}:$PYTHONPATH" {python}')):
        with open(file, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nexec {line} "$@"\n')
        os.chmod(file, 0o755)
    return commands


class Session:
    """A bash or a Python that runs one block after the other."""

    def __init__(self, words, folder, environment, log):
        self.log = log
        reading, writing = os.pipe()
        self.report = os.fdopen(reading, encoding="utf-8", errors="replace")
        with open(log, "ab") as output:
            self.process = subprocess.Popen(["bash", "-c", 'exec 9>&"$0"; exec "$@"', str(writing), *words], stdin=subprocess.PIPE, stdout=output,
                                            stderr=output, text=True, cwd=folder, env=environment, pass_fds=[writing], start_new_session=True)
        os.close(writing)

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def run(self, line):
        """Sends a line. Returns (failures as (line, code, output), the folder after it or None when the session has ended)."""
        self.say(line)
        failures, at = [], 0
        hangs = threading.Timer(PATIENCE, self.kill)
        hangs.start()
        try:
            for words in iter(lambda: self.report.readline().split(maxsplit=1), []):
                if words[0] == "at":
                    at = int(words[1])
                elif words[0] == "failed":
                    failures.append((*map(int, words[1].split()), "".join(iter(self.report.readline, "end\n"))))
                elif words[0] == "done":
                    return failures, words[1].rstrip("\n")
        finally:
            hangs.cancel()
        return [*failures, (at, f"{self.process.wait()}: the session ended here, or was ended because a command hangs", self.tail())], None

    def tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-TAIL:])

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        self.kill()
        self.process.stdin.close()
        self.process.wait()
        self.report.close()


class PageRun:
    """Runs the blocks of one page below `folder`; `environment` is that of all its commands."""

    def __init__(self, page, checkout, folder, environment):
        self.page, self.folder, self.current = page, folder, checkout
        self.environment = {**environment, "LOG": os.path.join(folder, "log")}
        self.sessions = {}
        self.executed = self.checked = 0
        self.failures = []  # texts "PAGE:LINE: ..."

    def session(self, language):
        if language not in self.sessions:
            words = ["bash", "--noprofile", "--norc"] if language == "sh" else ["python3", "-c", PYTHON]
            self.sessions[language] = Session(words, self.current, self.environment, self.environment["LOG"])
            if language == "sh":
                self.sessions[language].say(SHELL)
        return self.sessions[language]

    def script(self, block):
        """A file whose lines have the numbers that they have in the page."""
        path = os.path.join(self.folder, f"block_{block.line}")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n" * (block.line - 1) + block.code + ("true\n" if block.language == "sh" else ""))
        return path

    def run(self, text):
        try:
            for block in pages.blocks_of(text, self.page):
                if block.runs and not self.run_block(block):
                    return
                elif block.language in ("sh", "python") and not block.runs:
                    self.checked += len(pages.commands_of(block.code)) if block.language == "sh" else 1
        finally:
            for session in self.sessions.values():
                session.end()

    def run_block(self, block):
        """Runs a block. False: there is no session for the next."""
        path = self.script(block)
        lines = [block.line + index for index, _ in pages.commands_of(block.code)] if block.language == "sh" else [block.line]
        self.executed += len(lines)
        quoted = shlex.quote(path)
        line = f'source {quoted} </dev/null; echo "done $PWD" >&9' if block.language == "sh" else f"{self.current}\t{path}"
        failures, folder = self.session(block.language).run(line)
        expected = int(block.marks.get("exit", 0))
        ended = {line for line, _, _ in failures}
        for line, code, output in failures:
            if code != expected:
                source = block.code.split("\n")[max(0, line - block.line)].strip()
                self.failures.append(f"{self.page}:{line}: {source}\n  exit code {code}\n" + "".join(f"  | {text}\n" for text in output.splitlines()))
        for line in lines:
            if expected and line not in ended:
                self.failures.append(f"{self.page}:{line}: ends with 0 and not with {expected}, as the block says\n")
        self.current = folder
        return folder is not None


def needs_python(text):
    return any(block.runs and (block.language == "python" or re.search(r"\bpython3?\b|\.py\b", block.code)) for block in pages.blocks_of(text, ""))


def run_page(build, page):
    """Runs a page of the tree. Returns a PageRun, or SKIPPED."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        text = file.read()
    if not any(block.runs for block in pages.blocks_of(text, page)):
        run = PageRun(page, "", "", {})
        run.run(text)
        return run
    python = package_python(build) if needs_python(text) else sys.executable
    if python is None:
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="datacom-docs-") as folder:
        checkout = os.path.join(folder, "datacom")
        copy_of_checkout(checkout)
        commands = link_build(build, checkout, python)
        os.mkdir(os.path.join(folder, "home"))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DATACOM_")}
        environment |= {"PATH": commands + ":" + environment["PATH"], "HOME": os.path.join(folder, "home"), "MPLBACKEND": "Agg",
                        "DATACOM_BUILD": os.path.join(checkout, "build", "release"), "PYTHONDONTWRITEBYTECODE": "1"}
        run = PageRun(page, checkout, folder, environment)
        run.run(text)
    return run


def main(build, *names):
    names = names or pages.pages_of(ROOT)
    code, executed, checked = 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        for name, run in zip(names, threads.map(lambda name: run_page(os.path.abspath(build), name), names)):
            if run == SKIPPED:
                print(f"{name}: skipped")
                code = code or SKIPPED
            else:
                if run.executed + run.checked > 0:
                    print(f"{name}: {run.executed} commands executed, {run.checked} only checked")
                print("".join(run.failures), end="", flush=True)
                executed, checked = executed + run.executed, checked + run.checked
                code = 1 if run.failures else code
    print(f"{executed} commands executed, {checked} only checked; {time.process_time() + sum(os.times()[2:4]):.0f} s of processor time")
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
# SPDX-License-Identifier: Apache-2.0
