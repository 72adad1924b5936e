#!/usr/bin/env python3
"""Checks that the tree follows docs/developing.md: layers, linked libraries, sizes, cited documents, the map of folders.

usage: structure_test.py BUILD_FOLDER [unittest arguments]. Standard library only. The layers are ordered as in that page's table
of folders, so the documented map and the checked rule cannot differ.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build" / "release"
SKIP = {"build", "runs", "__pycache__"}
ROLES = ("replay", "actor", "learner")

MAX_HEADER_LINES = 300
MAX_SOURCE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_CELL = 140  # characters in a cell of a Markdown table
MAX_TRACKED_BYTES = 30 << 20
MAX_STEPS = {"product": 350, "all": 572}  # of a build from nothing
MAX_README = {"lines": 150, "words": 1100, "numbers": 30}
MAX_PAGES, MAX_PAGE_LINES = 24, 4500  # of docs/
# "path:function" -> why it may be longer. An entry that is no longer needed fails the test.
LONG_FUNCTIONS = {}

# The learner core knows no task, no transport and no experiment.
CORE_MAY_INCLUDE = re.compile(r"common/(base|nn|safety)/|common/config/algorithms\.h|common/metrics/statistics\.h|datacom/v1/algorithm\.pb\.h|absl/|google/protobuf/")

TORCH = re.compile(r"^(torch|ATen|c10)/")
# A file of the learner core belongs to a backend by its folder or by its name; this one shows the CPU's choice.
BACKEND = re.compile(r"^learner/(?:nn/(cpu|torch)/|algorithms/\w+_(cpu|torch)\.(?:cc|h)$)")
BACKEND_CHOICE = {"learner/algorithms/algorithm.cc"}
MUJOCO = re.compile(r"^mujoco/")


def files(*suffixes):
    """Every file of the project with one of the suffixes, as paths relative to the root."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        # Not entered: tests that run at the same time make and remove files below build/.
        folders[:] = [name for name in folders if name not in SKIP and not name.startswith(".")]
        for name in names:
            path = pathlib.Path(folder, name)
            if not name.startswith(".") and path.suffix in suffixes:
                found.append(path.relative_to(ROOT))
    return sorted(found)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def includes(path):
    return re.findall(r'^\s*#\s*include\s+["<]([^">]+)[">]', read(path), re.M)


def backend_of(path):
    match = BACKEND.match(str(path))
    return match and (match.group(1) or match.group(2))


def documented_layers():
    """Folders of the table in docs/developing.md, lowest first."""
    return re.findall(r"^\| `([\w/]+?)/` \|", read("docs/developing.md"), re.M)


def layer_of(path, layers):
    """Index of a repository path's layer, or None (a system header, a file at the root)."""
    text = str(path)
    if text.startswith("datacom/v1/"):
        return layers.index("proto")
    best = [name for name in layers if text.startswith(name + "/")]
    return layers.index(max(best, key=len)) if best else None


def blank(text):
    """C++ without comments, strings and preprocessor lines; line breaks are kept."""
    pattern = re.compile(
        r'R"([^(\s]*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*',
        re.S | re.M)
    return pattern.sub(lambda match: "\n" * match.group(0).count("\n"), text)


def functions(text):
    """(name, lines) of every function body; approximate: a block whose head has parentheses, outside other functions."""
    stack, head, line, head_line, found = [], "", 1, 1, []
    for char in blank(text):
        if char == "\n":
            line += 1
        if char == "{":
            plain = head.strip()
            scope = re.match(r"(inline\s+)?(namespace|class|struct|enum|union|extern)\b|template\s*<.*>\s*(class|struct)\b", plain, re.S)
            inside = any(kind == "function" for kind, _, _ in stack)
            kind = "function" if "(" in plain and not scope and not inside else "block"
            name = re.search(r"([~\w:]+|operator[^\s(]+)\s*\(", plain)
            stack.append((kind, name.group(1) if name else "?", head_line))
            head = ""
        elif char == "}":
            kind, name, start = stack.pop() if stack else ("block", "?", line)
            if kind == "function":
                found.append((name, line - start + 1))
            head = ""
        elif char == ";":
            head = ""
        else:
            if not head.strip():
                head_line = line
            head += char
    return found


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", markdown, re.M)}


def sources_in(cmake):
    """The sources that the text of a CMake file names, relative to its folder: also in loops, and in lists to which .cc is appended."""
    def expand(loop):
        variable, *values = loop.group(1).split()
        return "\n".join(loop.group(2).replace("${" + variable + "}", value) for value in values)

    text = re.sub(r"#.*", "", cmake).replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
    text = re.sub(r"\bforeach\(([^)]*)\)(.*?)\bendforeach\(", expand, text, flags=re.S)
    for variable in re.findall(r"\blist\(TRANSFORM (\w+) APPEND \.cc\b", text):
        text += "".join(f"\n{name}.cc" for names in re.findall(rf"\bset\({variable}\s([^)]*)\)", text) for name in names.split())
    return set(re.findall(r"(?<![\w./$}-])[\w.-][\w./-]*\.(?:cc|py)\b", text))


def numbers(markdown):
    """The figures in the text of a page, without code, links and names."""
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", " ", markdown, flags=re.S)
    return re.findall(r"(?<![\w.,+-])\d[\d,]*(?:\.\d+)?(?![\w.]*\w)", text)


def listing(wrong):
    return "\n  " + "\n  ".join(wrong)


def linked(binary, folder="bin"):
    """All shared libraries that a built binary or library loads."""
    path = BUILD / folder / binary
    if not path.exists():
        raise AssertionError(f"{path} is not built")
    output = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*(lib\S+)", output, re.M)


def learner_is_built():
    cache = BUILD / "CMakeCache.txt"
    return not cache.exists() or not re.search(r"^DATACOM_LEARNER:BOOL=(OFF|0|FALSE)$", cache.read_text(), re.M)


class Layers(unittest.TestCase):
    def test_a_folder_includes_only_folders_above_it_in_the_documented_map(self):
        layers, wrong = documented_layers(), []
        self.assertIn("common/base", layers)
        for path in files(".h", ".cc", ".inc"):
            own = layer_of(path, layers)
            if own is None or layers[own] == "tests":
                continue
            for include in includes(path):
                other = layer_of(include, layers)
                if other is not None and other > own:
                    wrong.append(f"{path} includes {include}: {layers[other]} is below {layers[own]}")
        self.assertFalse(wrong, listing(wrong))

    def test_roles_do_not_include_each_other(self):
        """Of deploy/, only the program of tools may include roles: the actor and the replay."""
        wrong = []
        for path in files(".h", ".cc"):
            for include in includes(path):
                role = include.split("/")[0]
                if path.parts[:2] == ("deploy", "tools") and path.parts[2] != "maps" and role in ("replay", "actor"):
                    continue
                if path.parts[:3] == ("deploy", "examples", "plugin"):  # includes the installed package
                    continue
                if path.parts[0] in ROLES + ("deploy",) and role in ROLES and role != path.parts[0]:
                    wrong.append(f"{path} includes {include}")
        self.assertFalse(wrong, listing(wrong))

    def test_public_headers_include_only_public_ones(self):
        listed = read("deploy/dev/cmake/Plugins.cmake")
        public = {name for line in re.findall(r"^  [a-z].*", listed, re.M) for name in re.findall(r"\b(?:common|learner)/\S+\.h\b", line)}
        messages, = re.findall(r"set\(DATACOM_PUBLIC_MESSAGES (.*)\)", listed)
        public |= {f"datacom/v1/{name}.pb.h" for name in messages.split()}
        self.assertIn("common/tasks/task.h", public)
        wrong = [f"{path} includes {include}" for path in sorted(public) if not path.startswith("datacom/") for include in includes(path)
                 if re.match(r"(common|learner|datacom|actor|replay|deploy)/", include) and include not in public]
        self.assertFalse(wrong, listing(wrong))

    def test_no_task_includes_another_task(self):
        wrong = []
        for path in files(".h", ".cc"):
            if path.parts[:2] != ("common", "tasks") or len(path.parts) < 4:
                continue
            for include in includes(path):
                parts = include.split("/")
                if parts[:2] == ["common", "tasks"] and len(parts) > 3 and parts[2] != path.parts[2]:
                    wrong.append(f"{path} includes {include}")
        self.assertFalse(wrong, listing(wrong))

    def test_torch_headers_stay_in_the_backend_that_is_a_library_of_its_own(self):
        wrong = [f"{path} includes {include}" for path in files(".h", ".cc") for include in includes(path)
                 if TORCH.match(include) and backend_of(path) != "torch" and path.parts[:2] != ("tests", "learner")]
        self.assertFalse(wrong, listing(wrong))

    def test_only_a_backends_files_include_it(self):
        wrong = []
        for path in files(".h", ".cc"):
            for include in includes(path):
                used = backend_of(include)
                choice = used == "cpu" and str(path) in BACKEND_CHOICE
                if used and path.parts[0] == "learner" and backend_of(path) != used and not choice:
                    wrong.append(f"{path} includes {include}")
        self.assertFalse(wrong, listing(wrong))

    def test_every_kernel_group_has_an_implementation_for_each_backend(self):
        folder = ROOT / "learner" / "algorithms"
        groups = {path.name.removesuffix("_kernels.h") for path in folder.glob("*_kernels.h")}
        for backend in ("cpu", "torch"):
            self.assertEqual(groups, {path.stem.removesuffix(f"_{backend}") for path in folder.glob(f"*_{backend}.cc")})

    def test_sources_are_globbed_only_in_folders_of_plug_ins(self):
        allowed = {"learner/core_sources.cmake", "common/acting/CMakeLists.txt", "common/tasks/CMakeLists.txt"}
        globbing = {str(path) for path in files(".txt", ".cmake") if re.search(r"file\(GLOB", read(path))}
        self.assertEqual(globbing, allowed)

    def test_mujoco_headers_stay_with_simulators_the_actor_and_the_tools(self):
        wrong = []
        for path in files(".h", ".cc"):
            simulator = path.parts[:2] == ("common", "tasks") and (path.stem == "task" or path.stem.startswith("mujoco"))
            if path.parts[0] in ("actor", "tests") or path.parts[:2] == ("deploy", "tools") or simulator:
                continue
            wrong += [f"{path} includes {include}" for include in includes(path) if MUJOCO.match(include)]
        self.assertFalse(wrong, listing(wrong))

    def test_the_algorithm_core_knows_neither_tasks_nor_experiments(self):
        wrong = [f"{path} includes {include}" for path in files(".h", ".cc") for include in includes(path)
                 if path.parts[:2] in (("learner", "nn"), ("learner", "algorithms"))
                 and re.match(r"(common|replay|actor|deploy|datacom|absl|google|grpcpp)/", include) and not CORE_MAY_INCLUDE.match(include)]
        self.assertFalse(wrong, listing(wrong))


class Packages(unittest.TestCase):
    def test_the_script_installs_every_package_that_cmake_asks_for(self):
        product = set(re.search(r"^packages=\((.*?)^\)", read("datacom"), re.M | re.S)[1].split())
        tests = set(re.search(r"^test_packages=\((.*?)\)", read("datacom"), re.M | re.S)[1].split())
        found = re.findall(r"^ *_datacom_(?:find\(|need\(.* )([\w+-]+)(?: |\)$)", read("deploy/dev/cmake/Packages.cmake"), re.M)
        asked = set(found) - {"package"}
        self.assertGreater(len(asked), 15)
        self.assertEqual(asked - product - tests, set())


class AllowedSkips(unittest.TestCase):
    def test_only_existing_tests_may_skip_and_each_has_a_reason(self):
        listed = subprocess.run(["ctest", "-N", "--test-dir", str(BUILD)], capture_output=True, text=True, check=True).stdout
        tests = {re.sub(r"_\d+$", "", name) for name in re.findall(r"Test +#\d+: (\S+)", listed)}  # without the number of a shard
        sources = [read(path) for path in files(".cc", ".py") if path.parts[0] == "tests"]
        for line in read("tests/allowed_skips.txt").splitlines():
            if line.startswith("#"):
                continue
            self.assertRegex(line, r"^\S+\t\S.*$")
            name, _, part = line.partition("\t")[0].partition("/")
            self.assertIn(name, tests)
            if part:
                suite, test = re.fullmatch(r"(?:(?:\w+/)?(\w+)\.)?(\w+)(?:/\w+)?", part).groups()
                pattern = rf"\bTEST(_F|_P)?\({suite},\s+{test}\)" if suite else rf"\bdef {test}\(self"
                self.assertTrue(any(re.search(pattern, text) for text in sources), f"there is no test {part}")


class LinkedLibraries(unittest.TestCase):
    def expect_without(self, binary, *libraries, folder="bin"):
        found = [name for name in linked(binary, folder) for library in libraries if name.startswith(library)]
        self.assertEqual(found, [], f"{binary} links a forbidden library")

    def test_replay_links_neither_libtorch_nor_mujoco(self):
        self.expect_without("datacom-replay", "libtorch", "libc10", "libmujoco")

    def test_actor_links_neither_libtorch_nor_graphics_libraries(self):
        self.expect_without("datacom-actor", "libtorch", "libc10", "libfreetype", "libEGL", "libGL")

    def test_tools_link_no_libtorch_and_load_gl_at_run_time(self):
        self.expect_without("datacom-tools", "libtorch", "libc10", "libgrpc", "libEGL", "libGL", "libX11")

    def test_learner_links_neither_libtorch_nor_mujoco(self):
        if not learner_is_built():
            self.skipTest("this build has no learner")
        self.expect_without("datacom-learner", "libtorch", "libc10", "libmujoco")

    def test_the_library_for_libtorch_shows_one_function(self):
        library = BUILD / "bin" / "libdatacom_torch.so"
        if not library.exists():
            self.skipTest("this build has no LibTorch")
        output = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
        self.assertEqual([line.split()[-1] for line in output.stdout.splitlines()], ["datacom_torch_make_kernels"])

    def test_the_command_links_neither_libtorch_nor_mujoco(self):
        self.expect_without("datacom", "libtorch", "libc10", "libmujoco")

    def test_only_the_programs_of_the_tests_have_failpoints(self):
        def has_failpoints(program):
            return b"DATACOM_FAILPOINT" in program.read_bytes()
        programs = [path for path in (BUILD / "bin").glob("datacom*") if path.is_file()]
        self.assertIn("datacom-replay", [path.name for path in programs])
        self.assertEqual([path.name for path in programs if has_failpoints(path)], [])
        if learner_is_built():
            self.assertTrue(has_failpoints(BUILD / "tests" / "failpoints" / "datacom-replay"))

    def test_the_robots_library_links_only_what_acting_needs_and_exports_only_its_interface(self):
        library = "libdatacom_policy.so"
        self.expect_without(library, "libtorch", "libc10", "libmujoco", "libgrpc", "libssl", "libprometheus", folder="lib")
        output = subprocess.run(["nm", "-D", "--defined-only", str(BUILD / "lib" / library)], capture_output=True, text=True, check=True)
        names = sorted(line.split()[-1] for line in output.stdout.splitlines())
        self.assertEqual(names, [f"datacom_policy_{verb}" for verb in ("act", "begin", "describe", "filter", "free", "load", "use_shield", "why")])


class Steps(unittest.TestCase):
    def steps(self, target):
        done = subprocess.run(["ninja", "-C", str(BUILD), "-t", "commands", target], capture_output=True, text=True, check=True)
        return len(done.stdout.splitlines())

    def test_a_build_has_few_steps(self):
        """Each costs a user seconds: merge sources or programs before adding more."""
        if "DATACOM_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
            return  # the guard is for what users build
        targets = ("product", "all") if "DATACOM_TESTS:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text() else ("product",)
        for target in targets:
            with self.subTest(target):
                self.assertLessEqual(self.steps(target), MAX_STEPS[target])


class Sizes(unittest.TestCase):
    def test_files_stay_short(self):
        wrong = []
        for path in files(".h", ".cc"):
            lines = read(path).count("\n")
            limit = MAX_HEADER_LINES if path.suffix == ".h" else MAX_SOURCE_LINES
            if lines > limit:
                wrong.append(f"{path} has {lines} lines, more than {limit}")
        self.assertFalse(wrong, listing(wrong))

    def test_functions_stay_short(self):
        wrong, unused = [], set(LONG_FUNCTIONS)
        for path in files(".h", ".cc"):
            for name, lines in functions(read(path)):
                key = f"{path}:{name}"
                if lines <= MAX_FUNCTION_LINES:
                    continue
                if key in LONG_FUNCTIONS:
                    unused.discard(key)
                else:
                    wrong.append(f"{key} has {lines} lines, more than {MAX_FUNCTION_LINES}")
        self.assertFalse(wrong, listing(wrong))
        self.assertEqual(unused, set(), "these exceptions are no longer needed")

    def test_the_tracked_files_stay_light(self):
        """A clone is quick, and a machine with a GPU that takes 64 MiB takes the tree with programs."""
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        sizes = {name: (ROOT / name).stat().st_size for name in listed.split("\0") if name and (ROOT / name).is_file()}
        largest = sorted(sizes, key=sizes.get)[-5:]
        self.assertLess(sum(sizes.values()), MAX_TRACKED_BYTES, "the largest files are" + listing(largest))

    def test_the_front_page_stays_short(self):
        text = read("README.md")
        found = {"lines": text.count("\n"), "words": len(text.split()), "numbers": len(numbers(text))}
        self.assertEqual({name: count for name, count in found.items() if count > MAX_README[name]}, {}, f"more than {MAX_README}")

    def test_the_pages_stay_few_and_short(self):
        pages = sorted((ROOT / "docs").glob("**/*.md"))
        self.assertLessEqual(len(pages), MAX_PAGES)
        self.assertLessEqual(sum(page.read_text(encoding="utf-8").count("\n") for page in pages), MAX_PAGE_LINES)

    def test_a_number_is_a_figure_in_text_and_not_a_part_of_a_name_or_of_code(self):
        text = "C++20, 7dof, `x 3`, 1,000 ± 2.5 steps [a](b9) 0.41\n```sh\ndatacom --steps 60000\n```\n"
        self.assertEqual(numbers(text), ["1,000", "2.5", "0.41"])

    def test_the_function_finder_counts_lines(self):
        text = "namespace a {\nint F(int x) {\n  if (x) {\n    return '{';\n  }\n  return 0;\n}\nclass B {\n  void G() const {}\n};\n}\n"
        self.assertEqual(functions(text), [("F", 6), ("G", 1)])


class Habits(unittest.TestCase):
    def search(self, pattern, paths):
        return [f"{path}: {match.group(0)}" for path in paths if path != pathlib.Path("tests/structure_test.py")
                for match in re.finditer(pattern, read(path))]

    def test_there_are_no_todo_marks(self):
        paths = files(".h", ".cc", ".inc", ".proto", ".py", ".sh", ".cmake", ".txt", ".textproto", ".md", ".yaml")
        wrong = self.search(r"\b(TODO|FIXME|XXX)\b", (path for path in paths if "golden" not in path.parts))
        self.assertFalse(wrong, listing(wrong))

    def test_no_merge_was_left_open(self):
        wrong = [str(path) for path in files(".cc", ".h", ".proto", ".py", ".md", ".txt", ".cmake", ".textproto")
                 if re.search(r"^(<{7}|>{7}) ", read(path), re.M)]
        self.assertFalse(wrong, listing(wrong))

    def test_tests_wait_for_conditions_and_never_sleep(self):
        paths = [path for path in files(".h", ".cc", ".py", ".sh") if path.parts[0] == "tests"]
        paths.remove(pathlib.Path("tests/bench/control_loop.py"))  # it measures how late a sleep ends
        wrong = self.search(r"\b(sleep_for|sleep_until|usleep|nanosleep|SleepFor|time\.sleep|sleep\s*\(|sleep [0-9.]+)", paths)
        self.assertFalse(wrong, listing(wrong))

    def test_no_question_about_a_file_throws(self):
        """A folder of somebody else answers with an error; calls with an error code take it, and common/base/files.h has the usual ones."""
        rest = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
        with_path = r"\b(?:fs|filesystem)::(?:exists|is_directory|is_regular_file|is_empty|file_size|last_write_time|absolute|canonical|weakly_canonical)"
        without = r"\b(?:fs|filesystem)::(?:temp_directory_path|current_path)"
        wrong = []
        for path in (path for path in files(".h", ".cc") if path.parts[0] != "tests"):
            text = blank(read(path))
            calls = [match.group(0) for match in re.finditer(with_path + rest, text)
                     if not re.search(r",\s*\w+$|^fs::symlink_status\(", match.group(1))]
            calls += [match.group(0) for match in re.finditer(without + rest, text) if not match.group(1)]
            wrong += [f"{path}: {call}" for call in calls]
        self.assertFalse(wrong, listing(wrong))

    def test_headers_are_guarded_by_their_path(self):
        wrong = []
        for path in files(".h"):
            guard = "DATACOM_" + re.sub(r"[/.]", "_", str(path)).upper() + "_"
            if f"#ifndef {guard}\n#define {guard}\n" not in read(path):
                wrong.append(f"{path} has no guard {guard}")
        self.assertFalse(wrong, listing(wrong))


class Licence(unittest.TestCase):
    SUFFIXES = (".cc", ".h", ".inc", ".c", ".proto", ".js", ".css", ".cmake", ".py", ".sh", ".txt", "")

    def is_source(self, path, text):
        if path.suffix == ".txt":
            return path.name == "CMakeLists.txt"
        return path.suffix != "" or path.name == "Dockerfile" or text.startswith("#!")

    def test_every_source_ends_with_the_name_of_its_licence(self):
        wrong = []
        for path in [*files(*self.SUFFIXES), pathlib.Path(".ci/run"), pathlib.Path(".githooks/pre-commit")]:
            text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
            last = text.rstrip("\n").rsplit("\n", 1)[-1]
            if self.is_source(path, text) and "SPDX-License-Identifier: Apache-2.0" not in last:
                wrong.append(str(path))
        self.assertFalse(wrong, listing(wrong))


class Citations(unittest.TestCase):
    # A document, followed by sections such as docs/algorithms.md 4 and 5.2; a comment may break the line between them.
    CITATION = re.compile(r"([\w./-]+\.md)\b`?((?:(?:,| and|, and)?(?: |\n[ \t]*(?://|#) )\d+(?:\.\d+)*\b)*)")
    SUFFIXES = (".h", ".cc", ".inc", ".proto", ".cmake", ".txt", ".py", ".sh", ".textproto", ".yaml", ".yml", ".in", ".md", "")

    def wrong_in(self, path):
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        for citation in self.CITATION.finditer(text):
            name, sections = citation.groups()
            place = f"{path}:{text.count(chr(10), 0, citation.start()) + 1}"
            documents = [document for document in (ROOT / name, ROOT / path.parent / name) if document.is_file()]
            headings = {number for document in documents for number in re.findall(r"^#+ ([\d.]*\d)\b", document.read_text(encoding="utf-8"), re.M)}
            if not documents:
                yield f"{place} cites {name}: there is no such file"
                continue
            for section in re.findall(r"\d[\d.]*", sections):
                if section not in headings:
                    yield f"{place} cites {name} {section}: the file has no such heading"

    def test_every_cited_document_and_section_exists(self):
        wrong = [line for path in files(*self.SUFFIXES) for line in self.wrong_in(path)]
        self.assertFalse(wrong, listing(wrong))


class Map(unittest.TestCase):
    def test_the_documented_map_names_exactly_the_existing_folders(self):
        named = set(documented_layers())
        top = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name not in SKIP}
        expected = (top - {"common"}) | {f"common/{path.name}" for path in (ROOT / "common").iterdir() if path.is_dir()}
        self.assertEqual(named, expected)

    def test_every_experiment_folder_is_a_task(self):
        tasks = {path.parent.name for path in (ROOT / "common" / "tasks").glob("*/task.cc")}
        for path in files(".textproto"):
            if path.parts[:2] == ("deploy", "experiments"):
                self.assertIn(path.parts[2], tasks, path)

    def test_every_test_source_is_built_or_run(self):
        built = set()
        for path in files(".txt", ".cmake"):
            if path.parts[0] == "tests" and (path.name == "CMakeLists.txt" or path.suffix == ".cmake"):
                built |= {os.path.normpath(path.parent / token) for token in sources_in(read(path))}
        self.assertGreater(len(built), 100)
        needed = [path for path in files(".cc", ".py") if path.parts[0] == "tests" and (path.suffix == ".cc" or path.stem.endswith("_test"))]
        wrong = [str(path) for path in needed if str(path) not in built]
        self.assertFalse(wrong, listing(wrong))

    def test_the_sources_of_a_cmake_file_are_found(self):
        text = ('# no.cc\ndatacom_test(NAME a SRCS a.cc ../b/c_test.cc)\nforeach(name d e\n  f)\n  add("${CMAKE_CURRENT_SOURCE_DIR}/x/${name}.py" g.cc)\n'
                'endforeach()\nset(targets h i)\nlist(TRANSFORM targets APPEND .cc OUTPUT_VARIABLE sources)\n')
        self.assertEqual(sources_in(text), {"a.cc", "../b/c_test.cc", "x/d.py", "x/e.py", "x/f.py", "g.cc", "h.cc", "i.cc"})


class Pages(unittest.TestCase):
    def pages(self):
        return [*files(".md"), *(path.relative_to(ROOT) for path in sorted((ROOT / ".github").rglob("*.md")))]

    def test_no_table_cell_is_longer_than_a_line(self):
        wrong = []
        for path in self.pages():
            for number, line in enumerate(read(path).splitlines(), 1):
                cells = re.split(r"(?<!\\)\|", line) if line.startswith("|") else []
                wrong += [f"{path}:{number} has a cell of {len(cell.strip())} characters; write a list" for cell in cells
                          if len(cell.strip()) > MAX_CELL]
        self.assertFalse(wrong, listing(wrong))

    def test_every_link_leads_to_a_file_and_a_heading(self):
        wrong = []
        for path in self.pages():
            for target in re.findall(r"\]\(([^)\s]+)\)", read(path)):
                name, _, anchor = target.partition("#")
                if re.match(r"https?:", target):
                    continue
                linked_to = (ROOT / path.parent / name).resolve() if name else ROOT / path
                if not linked_to.exists() or anchor and anchor not in anchors(linked_to.read_text(encoding="utf-8")):
                    wrong.append(f"{path} links to {target}")
        self.assertFalse(wrong, listing(wrong))


class Release(unittest.TestCase):
    def find(self, path, pattern):
        found = re.findall(pattern, read(path), re.M)
        self.assertTrue(found, f"{path} does not have {pattern}")
        return found

    def test_every_place_has_the_version_of_the_build(self):
        version, = self.find("CMakeLists.txt", r"^project\(datacom VERSION ([\d.]+) ")
        self.assertEqual(self.find("deploy/docker/Dockerfile", r"^ARG VERSION=(.*)$"), [version])
        self.assertEqual(self.find("CITATION.cff", r"^version: (.*)$"), [version])
        self.assertEqual(self.find("docs/changelog.md", r"^## ([\d.]+)")[0], version)

    def test_every_image_names_version_and_licence(self):
        stages = [stage for stage in read("deploy/docker/Dockerfile").split("\nFROM ") if "ENTRYPOINT" in stage]
        self.assertEqual(len(stages), 6)
        for stage in stages:
            self.assertIn("\nARG VERSION\n", stage)
            self.assertIn('org.opencontainers.image.version="${VERSION}"', stage)
            self.assertIn('org.opencontainers.image.licenses="Apache-2.0"', stage)

    def test_the_changelog_names_the_protocol_of_its_newest_release(self):
        protocol, = self.find("common/base/version.h", r"kProtocolVersion = (\d+);")
        self.assertEqual(self.find("docs/changelog.md", r"^\| protocol \| (\d+) ")[0], protocol)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]] + sys.argv[2:], verbosity=1)
# SPDX-License-Identifier: Apache-2.0
