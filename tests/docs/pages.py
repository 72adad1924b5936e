"""The commands of a Markdown page: finds its code blocks, and checks what can be checked without running them.

Commands stand in fenced blocks. The info string begins with `sh` or `python`; further words are marks:

  needs=WHAT   what a laptop with this checkout lacks (NEEDS); the block is not run, only its verbs, options and paths are checked
  exit=N       the commands of the block end with this code, for example because they show how a mistake is refused
"""
import os
import re
import shlex

NEEDS = ("docker", "gpu", "hosts", "hours", "kubernetes", "network", "prometheus", "robot", "slurm")
# Other words that may begin a command of a block that runs. All else stands in a marked block.
HARMLESS = ("[ awk c++ cat cc cd cmake cmp cp cut diff echo export find g++ gcc grep head jq ls make mkdir mv ninja printf python python3 rm sed "
            "sort tail test touch tr true unset wc").split()
DATACOM = ("datacom", "./datacom")
KEYWORDS = {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"}
CLOSING = {"fi", "done", "}"}  # words that are no command
OPERATOR = re.compile(r"[;&|()]+$")
REDIRECTION = re.compile(r"&?[<>]+[&|]?$")
# A line that an author means as a command, where it is not in a fence that says so.
LOOKS_LIKE_COMMAND = re.compile(r"\s*(\$ \S|(\./)?datacom [a-z]|"
                                r"(python3?|pip3?|docker|podman|kubectl|sbatch|srun|cmake|git|cd|sudo|curl|ssh) [\w./-])")
# A setting that a page names: a path of an experiment, a sweep or a task file, in back-ticks.
SETTING = re.compile(r"`((?:run|network|replay|schedule|learner|hyper|members|constraints|pretrain|planning|demonstrations|task_options|task_file|sweep)"
                     r"(?:\.[a-z_0-9]+)+)(?=[`= ])")
FILE = re.compile(r"\.(csv|json|html|proto|py|sbatch|textproto)$")
TREE = re.compile(r"(?<![\w./$}-])(?:\.ci|\.github|actor|common|deploy|docs|learner|proto|replay|tests)/[\w./-]*\w(?![\w*{$<])")


class Block:
    """A fenced block. `line` is the number of its first line of code."""

    def __init__(self, page, line, info, code):
        words = info.split()
        self.page, self.line, self.code = page, line, code
        self.language = words[0] if words else ""
        self.marks = dict(word.split("=", 1) if "=" in word else (word, "") for word in words[1:])

    @property
    def runs(self):
        return self.language in ("sh", "python") and "needs" not in self.marks


class Mistake(Exception):
    pass


def blocks_of(text, page):
    """The fenced blocks of a page, in its order. A fence may be indented, as in a list."""
    blocks, fence = [], None
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"( *)(```+)([^`]*)$", line)
        if fence is None and match:
            fence, indent, info, first, code = match[2], len(match[1]), match[3].strip(), number + 1, []
        elif fence is not None and match and match[2].startswith(fence) and not match[3].strip():
            blocks.append(Block(page, first, info, "".join(line + "\n" for line in code)))
            fence = None
        elif fence is not None:
            code.append(line[min(indent, len(line) - len(line.lstrip())):])
    if fence is not None:
        raise Mistake(f"{page}:{first - 1}: this fence does not end")
    return blocks


def unfenced_commands(text):
    """Numbers of the lines outside of fences that are indented as code and look like commands."""
    numbers, fenced, code = [], False, False
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r" *```", line):
            fenced = not fenced
        indented = line.startswith("    ") or line.startswith("\t")
        code = not fenced and (code if not line.strip() else indented and (code or blank))
        blank = not line.strip()
        if code and not blank and LOOKS_LIKE_COMMAND.match(line):
            numbers.append(number)
    return numbers


def logical_lines(code):
    """(index of the first line, text) of the lines of a script: continued lines joined, texts of here-documents left out."""
    lines, result, i = code.split("\n"), [], 0
    while i < len(lines):
        first, text = i, lines[i]
        while i + 1 < len(lines) and (text.endswith("\\") or not closed(text)):
            i += 1
            text = text[:-1] + lines[i] if text.endswith("\\") else text + "\n" + lines[i]
        document = re.search(r"(?<!<)<<-?(?!<)\s*(['\"]?)(\w+)\1", text)
        i += 1
        if document:
            while i < len(lines) and lines[i].strip() != document[2]:
                i += 1
            i += 1
        result.append((first, text))
    return result


def closed(text):
    try:
        list(lexer(text))
    except ValueError:
        return False
    return True


def lexer(text):
    words = shlex.shlex(text, posix=True, punctuation_chars=";&|()<>")
    words.whitespace_split = True
    return words


def commands_of(code):
    """(index of the line, words) of each simple command of a script."""
    commands = []
    for index, text in logical_lines(code):
        words, skip = [], False
        for word in [*lexer(text), ";"]:
            if OPERATOR.match(word):
                commands.append((index, words))
                words = []
            elif REDIRECTION.match(word):
                skip = True
                if words and words[-1].isdigit():
                    words.pop()
            elif skip:
                skip = False
            elif words or not (word in KEYWORDS or re.match(r"\w+=", word)):
                words.append(word)
    return [(index, words) for index, words in commands if words and words[0] not in CLOSING and words[0] != "for"]


def cut_tables(text):
    """Numbers of the lines where a blank line cuts a table: a row that follows it without a head of its own is shown as text with bars."""
    lines, numbers, fenced = text.split("\n"), [], False
    for i, line in enumerate(lines):
        fenced ^= bool(re.match(r" *```", line))
        if not fenced and i > 1 and line.startswith("|") and not lines[i - 1].strip() and lines[i - 2].startswith("|"):
            if not re.match(r"\|[ :|-]+\|$", lines[i + 1]):
                numbers.append(i + 1)
    return numbers


class Checker:
    """Checks tables, settings and the commands of blocks. `help_of` returns the help of `datacom WORDS --help`, `knows` whether there is a
    setting; `root` is the tree."""

    def __init__(self, root, help_of, knows=lambda _: True):
        self.root, self.help_of, self.knows = root, help_of, knows
        self.count = 0  # of checked commands

    def check_page(self, text, page):
        """The mistakes of a page, as lines "PAGE:LINE: what"."""
        try:
            blocks = blocks_of(text, page)
        except Mistake as mistake:
            return [str(mistake)]
        wrong = [f"{page}:{number}: a command in an indented block; use a fence ```sh" for number in unfenced_commands(text)]
        wrong += [f"{page}:{number}: a blank line cuts the table above" for number in cut_tables(text)]
        wrong += [f"{page}:{number}: `datacom explain {name}` knows no such setting" for number, line in enumerate(text.split("\n"), 1)
                  for name in SETTING.findall(line) if not FILE.search(name) and not self.knows(name)]
        for block in blocks:
            for line, what in self.check_block(block):
                wrong.append(f"{page}:{block.line + line}: {what}")
        return wrong + [f"{page}:{line}: pip install before a virtual environment (-m venv, ./datacom python): Debian's own Python refuses it"
                        for line in refused_installs(blocks)]

    def check_block(self, block):
        lines = block.code.split("\n")
        if not block.language:
            return [(-1, "a fence without an info string; use sh, python, text or the name of the language")]
        if block.language in ("bash", "shell", "console", "shell-session"):
            return [(-1, f"```{block.language}: use sh")]
        if block.language not in ("sh", "python"):
            wrong = [(index, "a command in a block of another language; use ```sh") for index, line in enumerate(lines)
                     if block.language == "text" and re.match(r"\s*(\$ \S|(\./)?datacom [a-z]+ .*--)", line)]
            return wrong
        wrong = [(-1, f"unknown mark {mark}") for mark in block.marks if mark not in ("needs", "exit")]
        wrong += [(-1, f"needs={what}: use {', '.join(NEEDS)}") for what in block.marks.get("needs", NEEDS[0]).split(",") if what not in NEEDS]
        if block.language == "python":
            return wrong + self.check_python(block)
        for index, words in commands_of(block.code):
            self.count += 1
            wrong += [(index, what) for what in self.check_command(block, words)]
        for index, line in enumerate(lines):
            if "needs" in block.marks:
                wrong += [(index, f"{path} does not exist") for path in TREE.findall(line)
                          if not os.path.exists(os.path.join(self.root, path))]
        return wrong

    def check_python(self, block):
        self.count += 1
        try:
            compile(block.code, block.page, "exec")
        except SyntaxError as error:
            return [((error.lineno or 1) - 1, f"Python: {error.msg}")]
        return []

    def check_command(self, block, words):
        name = words[0]
        if name in DATACOM:
            try:
                self.check_datacom(words)
            except Mistake as mistake:
                return [str(mistake)]
        elif "needs" not in block.marks and "/" not in name and name not in HARMLESS:
            return [f"{name}: may not run here; mark the block with needs=WHAT"]
        return []

    def check_datacom(self, words):
        arguments = words[1:]
        if not arguments or arguments[0] in ("--help", "--version"):
            return
        verb = arguments[0]
        if words[0] == "./datacom" and check_developer_verb(self.root, arguments):
            return
        path = [verb]
        help_text = self.help_of([])
        if not re.search(rf"^  {re.escape(verb)}\b", help_text, re.M):
            raise Mistake(f"datacom {verb}: unknown verb")
        help_text = self.help_of(path)
        if "SUBCOMMAND" in help_text.upper() and len(arguments) > 1:
            path.append(arguments[1])
            if not re.search(rf"^  {re.escape(arguments[1])}\b", help_text, re.M):
                raise Mistake(f"datacom {verb} {arguments[1]}: unknown verb")
            help_text = self.help_of(path)
        options = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", help_text + self.help_of([])))  # some belong to every verb
        for word in arguments[len(path):]:
            option = word.split("=", 1)[0]
            if re.match(r"--?[A-Za-z]", option) and option not in options:
                raise Mistake(f"datacom {' '.join(path)} {option}: unknown option")
        if verb in ("train", "config", "sweep"):
            folder = "sweeps" if verb == "sweep" else "experiments"
            name = arguments[1] if len(arguments) > 1 else ""
            file = os.path.join(self.root, "deploy", folder, name + ".textproto")
            if re.fullmatch(r"[a-z_0-9]+/[a-z_0-9]+", name) and not os.path.exists(file):
                raise Mistake(f"datacom {verb} {name}: deploy/{folder} has no such file")


def refused_installs(blocks):
    """Numbers of the lines with a `pip install` before a line that makes a virtual environment."""
    numbers, made = [], False
    for block in blocks:
        for index, words in commands_of(block.code) if block.language == "sh" else []:
            made = made or words[1:3] == ["-m", "venv"] or words[:2] == ["./datacom", "python"]
            if not made and words[0].startswith(("pip", "python")) and "install" in words[1:4]:
                numbers.append(block.line + index)
    return numbers


def check_developer_verb(root, arguments):
    """Checks the arguments of a verb that ./datacom itself handles. False: it is no such verb."""
    verb, rest = arguments[0], arguments[1:]
    with open(os.path.join(root, "CMakePresets.json"), encoding="utf-8") as file:
        presets = re.findall(r'"name": "(\w+)", "configurePreset"', file.read())
    wrong = None
    if verb == "build":
        wrong = not set(rest[:1]) <= set(presets)
    elif verb == "test":
        wrong = rest[:1] == ["--preset"] and (len(rest) < 2 or rest[1] not in presets)
        rest = rest[2:] if rest[:1] == ["--preset"] else rest
        wrong = wrong or not all(re.match(r"(-[LREIj]|--rerun-failed|--repeat)", word) for word in rest[::2])
    elif verb == "fuzz":
        wrong = bool(rest) and not (rest[0].isdigit() and set(rest[1:]) <= set(os.listdir(os.path.join(root, "tests", "fuzz", "corpus"))))
    elif verb == "format":
        wrong = rest not in ([], ["--check"])
    elif verb == "lint":
        wrong = len(rest) > 1
    elif verb == "python":
        with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:
            extras = re.findall(r"^(\w+) = \[", file.read().split("[project.optional-dependencies]")[1].split("\n\n")[0], re.M)
        wrong = len(rest) > 1 or not set(",".join(rest).split(",")) <= {"", *extras}
    elif verb == "new":
        wrong = len(rest) != 4 or rest[0] not in ("task", "algorithm") or rest[2] != "--like"
    elif verb in ("setup", "help"):
        wrong = bool(rest)
    elif verb == "bench" and rest[:1] in (["peers"], ["train"]):
        wrong = False
    if wrong:
        raise Mistake(f"{' '.join(['./datacom', *arguments])}: not as `./datacom help` says")
    return wrong is not None


def pages_of(root):
    """Every Markdown page of the tree, relative to the root."""
    found = []
    for folder, folders, names in os.walk(root):
        top = folder == root
        folders[:] = [name for name in folders if name not in ("build", "runs", "__pycache__") and not name.startswith(".") or
                      top and name == ".github"]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".md")]
    return sorted(found)
# SPDX-License-Identifier: Apache-2.0
