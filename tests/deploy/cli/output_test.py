"""Tests where the built commands write: files that a user names, standard output, narrow terminals."""
import fcntl
import os
import re
import resource
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

BIN = os.path.abspath(sys.argv.pop(1))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RUN = "shipped:cartpole/from_scratch"
RECORDS = os.path.join(ROOT, "deploy/results/cartpole/sac")
WRITERS = [("config", "cartpole/datacom"), ("report", RECORDS), ("export", RUN), ("export", RUN, "--format", "onnx", "--pairs", "3"),
           ("render", RUN, "--map", "--resolution", "5"),
           ("render", "cartpole", "--policy", "zeros", "--step", "0", "--width", "64", "--height", "64")]
STORED = ("export", RUN, "--format", "stored", "--epoch", "last")  # its bytes differ from call to call


class OutputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.run_dir = tempfile.mkdtemp(prefix="datacom-output-run-")
        cls.addClassCleanup(shutil.rmtree, cls.run_dir)
        subprocess.run([os.path.join(BIN, "datacom"), "config", "cartpole/datacom", "--out", os.path.join(cls.run_dir, "experiment.textproto")],
                       check=True)
        with open(os.path.join(cls.run_dir, "progress.csv"), "w", encoding="utf-8") as file:
            file.write("member,seed,epoch,env_steps,updates,eval_discounted_return,eval_return,eval_max_violation,status\n"
                       "0,3,2,1000,900,17.5,60.25,0.125,ok\n1,4,2,1000,901,18.5,70.75,0.5,diverged\n")

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-output-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_it(self, *arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([os.path.join(BIN, "datacom"), *arguments], timeout=PATIENCE, check=False, cwd=self.folder, **options)

    def written(self, *arguments):
        """What a verb writes into a new file, and its result; nothing where this machine cannot draw."""
        file = self.path("plain.png" if arguments[0] == "render" else "plain.onnx" if "onnx" in arguments else "plain.html")
        result = self.run_it(*arguments, "--out", file)
        if result.returncode != 0 and arguments[0] == "render" and b"install" in result.stderr:
            return None, result
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(file, "rb") as stream:
            content = stream.read()
        os.remove(file)
        return content, result

    def test_a_fifo_gets_the_bytes_of_every_verb_and_stays(self):
        for arguments in WRITERS:
            content, _ = self.written(*arguments)
            if content is None:
                continue
            fifo = self.path("fifo")
            os.mkfifo(fifo)
            with self.subTest(arguments):
                got = []

                def read(name=fifo, told=got):
                    with open(name, "rb") as stream:
                        told.append(stream.read())

                reader = threading.Thread(target=read)
                reader.start()
                result = self.run_it(*arguments, "--out", fifo)
                if not stat.S_ISFIFO(os.lstat(fifo).st_mode):  # ends the reader
                    os.rename(fifo, self.path("wrong"))
                    self.fail("the FIFO was replaced")
                reader.join(PATIENCE)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(got == [content])  # assertEqual would compare megabytes in lines
            os.remove(fifo)

    def test_a_file_beyond_the_limit_of_file_sizes_is_named(self):
        result = self.run_it("report", RECORDS, "--out", "large.html",
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000)))
        self.assertEqual((result.returncode, result.stderr), (1, b"datacom: write large.html.tmp: File too large\n"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_fifo_gets_a_film(self):
        fifo = self.path("film.mp4")
        os.mkfifo(fifo)
        keep = os.open(fifo, os.O_RDWR)  # a film of two small frames fits into the pipe
        self.addCleanup(os.close, keep)
        result = self.run_it("render", "cartpole", "--policy", "zeros", "--max-frames", "2", "--width", "64", "--height", "64", "--out", fifo)
        if b"install" not in result.stderr:
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(os.read(keep, 8)[4:], b"ftyp")
        self.assertEqual(os.listdir(self.folder), ["film.mp4"])

    def test_a_device_stays_a_device(self):
        device = self.path("null")
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            device = "/dev/null"  # only root can replace the machine's own
        for arguments in [*WRITERS, STORED]:
            with self.subTest(arguments):
                result = self.run_it(*arguments, "--out", device)
                if b"install" not in result.stderr:
                    self.assertEqual(result.returncode, 0, result.stderr)
                self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))
                self.assertEqual([name for name in os.listdir(self.folder) if name != "null"], [])

    def test_a_link_stays_and_its_target_is_replaced(self):
        for arguments in WRITERS:
            content, _ = self.written(*arguments)
            if content is None:
                continue
            link, target = self.path("link.html" if arguments[0] == "report" else "link.png"), self.path("target")
            os.symlink("target", link)
            with self.subTest(arguments):
                for _ in range(2):  # of no file, then of one
                    self.assertEqual(self.run_it(*arguments, "--out", link).returncode, 0)
                    self.assertTrue(os.path.islink(link) and not os.path.islink(target))
                    with open(target, "rb") as stream:
                        self.assertTrue(stream.read() == content)
            os.remove(link)
            os.remove(target)

    def test_a_dash_is_standard_output_and_messages_go_to_standard_error(self):
        for arguments in WRITERS:
            content, result = self.written(*arguments)
            if content is None:
                continue
            for name in ("-", "/dev/stdout"):
                with self.subTest((arguments, name)):
                    to_output = self.run_it(*arguments, "--out", name)
                    self.assertEqual(to_output.returncode, 0, to_output.stderr)
                    self.assertTrue(to_output.stdout == content)
                    self.assertEqual(bool(to_output.stderr), bool(result.stdout))
                    self.assertNotIn("-", os.listdir(self.folder))

    def test_two_commands_append_to_the_file_that_is_standard_output(self):
        with open(self.path("both"), "wb") as both:
            for name in ("cartpole/datacom", "cartpole/sac"):
                self.assertEqual(self.run_it("config", name, "--out", "/dev/stdout", stdout=both).returncode, 0)
        with open(self.path("both"), "rb") as both:
            self.assertEqual(both.read(), self.written("config", "cartpole/datacom")[0] + self.written("config", "cartpole/sac")[0])

    def test_a_film_for_the_browser_has_no_size_and_at_most_the_frames_that_were_asked_for(self):
        film = ("render", "cartpole", "--policy", "zeros", "--set", "task_options.horizon=100", "--out", "film.html")
        for option in ("--width", "--height"):
            result = self.run_it(*film, option, "64")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"{option}: a page is as large as the browser's window; FILE.mp4 has a size".encode(), result.stderr)
            self.assertEqual(os.listdir(self.folder), [])
        for most, frames in ((2, 2), (11, 11), (30, 26)):  # strides of 100, 10 and 4 steps
            result = self.run_it(*film, "--max-frames", str(most))
            self.assertEqual(result.stdout, f"film.html: {frames} frames of 100 steps; open it in a browser\n".encode(), result.stderr)

    def test_a_name_cannot_change_the_page_of_a_film(self):
        shutil.copytree(os.path.join(ROOT, "deploy/examples/policies/cartpole/from_scratch"), self.path("run"))
        experiment = self.path("run/experiment.textproto")
        with open(experiment, encoding="utf-8") as file:
            text = re.sub(r'(?m)^name: ".*"$', 'name: "<!--<script>"', file.read())
        with open(experiment, "w", encoding="utf-8") as file:
            file.write(text)
        result = self.run_it("render", "run", "--set", "task_options.horizon=5", "--out", "film.html")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(self.path("film.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn(r"\u003c!--\u003cscript>   member ", page)
        self.assertNotIn("<!--<", page)

    def test_a_report_does_not_replace_its_baseline(self):
        baseline = self.path("zeros.csv")
        with open(baseline, "wb") as file:
            self.assertEqual(self.run_it("eval", "cartpole", "--policy", "zeros", "--episodes", "1", "--csv", stdout=file).returncode, 0)
        with open(baseline, "rb") as file:
            content = file.read()
        os.symlink("zeros.csv", self.path("link"))
        result = self.run_it("report", self.run_dir, "--baseline", baseline, "--out", self.path("link"))
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"link is the file of --baseline {baseline}".encode(), result.stderr)
        with open(baseline, "rb") as file:
            self.assertEqual(file.read(), content)

    def test_a_folder_is_refused_before_any_work(self):
        for arguments in [*WRITERS, STORED]:
            with self.subTest(arguments):
                result = self.run_it(*arguments, "--out", self.folder)
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"--out: {self.folder} is a folder".encode(), result.stderr)
                self.assertEqual(os.listdir(self.folder), [])

    def test_a_full_standard_output_is_an_error_of_every_verb(self):
        for arguments in (("list",), ("list", "tasks"), ("help",), ("--version",), ("train", "--help"), ("eval", "--help"),
                          ("config", "cartpole/datacom"), ("config", "cartpole/datacom", "--out", "-"), ("status", self.run_dir),
                          ("rollout", "cartpole", "--policy", "random", "--csv"),  # more than one buffer
                          ("eval", "cartpole", "--policy", "random", "--episodes", "2", "--csv"), ("export", RUN, "--out", "x")):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                result = self.run_it(*arguments, stdout=full)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(b"datacom: standard output: No space left on device\n", result.stderr)

    def test_a_full_standard_output_is_an_error_of_every_role(self):
        for program in ("datacom-replay", "datacom-learner", "datacom-actor"):
            for option in ("--version", "--help"):
                with self.subTest(program=program, option=option), open("/dev/full", "wb") as full:
                    result = subprocess.run([os.path.join(BIN, program), option], stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
                    self.assertEqual(result.returncode, 1, result.stderr)
                    self.assertIn(b"standard output: No space left on device\n", result.stderr)

    def test_every_program_names_itself_before_its_version(self):
        for program in ("datacom", "datacom-actor", "datacom-learner", "datacom-replay", "datacom-tools"):
            done = subprocess.run([os.path.join(BIN, program), "--version"], stdout=subprocess.PIPE, timeout=PATIENCE, check=True, text=True)
            self.assertEqual(done.stdout.split()[0], program)

    def test_a_wrong_option_keeps_its_exit_code_when_standard_output_is_full(self):
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.run_it("list", "colours", stdout=full).returncode, 2)

    def test_a_reader_that_is_gone_ends_a_verb_quietly(self):
        for arguments in (("list",), ("rollout", "cartpole", "--policy", "random", "--csv"), ("eval", "cartpole", "--policy", "random", "--csv"),
                          ("export", RUN, "--out", "-")):
            with self.subTest(arguments):
                reader, writer = os.pipe()
                os.close(reader)
                result = self.run_it(*arguments, stdout=writer)
                os.close(writer)
                self.assertIn(result.returncode, (0, -13))
                self.assertNotIn(b"standard output", result.stderr)

    def lines_on_a_terminal(self, columns, *arguments):
        main, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        data = []

        def read():
            try:
                while piece := os.read(main, 65536):
                    data.append(piece)
            except OSError:  # the last writer is gone
                pass

        reader = threading.Thread(target=read)
        reader.start()
        result = self.run_it(*arguments, stdout=terminal)
        os.close(terminal)
        reader.join(PATIENCE)
        os.close(main)
        return b"".join(data).decode().splitlines(), result

    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (20, 40, 80):
            for arguments in (("help",), ("train", "--help"), ("eval", "--help"), ("list",), ("status", self.run_dir),
                              ("eval", "cartpole", "--policy", "zeros", "--episodes", "1")):
                with self.subTest((columns, arguments)):
                    lines, result = self.lines_on_a_terminal(columns, *arguments)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    # A word stays whole, and so does the narrowest part of a table: the member and one column.
                    wide = [line for line in lines if len(line) > max(columns, 25) and " " in line.strip()]
                    self.assertEqual(wide, [])

    def test_no_line_of_a_verb_that_plays_is_wider_than_the_terminal(self):
        arm = os.path.join(ROOT, "deploy/examples/arm_reach/task.textproto")
        for columns, arguments in ((40, ("eval", RUN, "--shield", "both", "--episodes", "1")),
                                   (80, ("eval", RUN, "--shield", "both", "--episodes", "1")),
                                   (40, ("eval", arm, "--policy", "zeros", "--episodes", "1")),
                                   (40, ("rollout", "cartpole", "--policy", "random", "--set", "task_options.horizon=20")),
                                   (50, ("sweep", "cartpole/cost_budgets", "--render-only", "--run-dir", os.path.join(self.folder, "swept"))),
                                   (40, ("task", "check", arm, "--steps", "200"))):
            with self.subTest((columns, arguments)):
                lines, result = self.lines_on_a_terminal(columns, *arguments)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual([line for line in lines if len(line) > columns and " " in line.strip()], [])

    def test_a_narrow_rollout_has_all_numbers_of_the_wide_one(self):
        rollout = ("rollout", "cartpole", "--policy", "zeros", "--set", "task_options.horizon=3")
        wide = self.run_it(*rollout).stdout.decode().splitlines()
        narrow, _ = self.lines_on_a_terminal(60, *rollout)
        parts = [narrow[start:start + len(wide)] for start in range(0, len(narrow), len(wide))]
        self.assertGreater(len(parts), 1)
        self.assertEqual(parts[0][0].split(), ["step", "action0", "obs0", "obs1"])
        for row in range(1, len(wide)):
            cells = [part[row].split() for part in parts]
            self.assertEqual(cells[0] + [cell for part in cells[1:] for cell in part[1:]], wide[row].split())

    def test_a_narrow_table_has_all_numbers_of_the_wide_one(self):
        wide = self.run_it("status", self.run_dir).stdout.decode().split("\n")
        narrow, _ = self.lines_on_a_terminal(60, "status", self.run_dir)
        heading = next(i for i, line in enumerate(wide) if line.startswith("member "))
        parts = [i for i, line in enumerate(narrow) if line.startswith("member ")]
        self.assertGreater(len(parts), 2)
        for row in range(3):
            cells = [narrow[part + row].split() for part in parts]
            key = cells[0][:1]
            self.assertEqual(key + [cell for part in cells for cell in part[1:]], wide[heading + row].split())

    def test_a_narrow_status_of_a_sweep_leaves_out_whole_columns(self):
        swept = os.path.join(self.folder, "swept")
        for name in ("short", "cost_budget-20"):
            os.makedirs(os.path.join(swept, name))
            shutil.copy(os.path.join(self.run_dir, "experiment.textproto"), os.path.join(swept, name))
        with open(os.path.join(swept, "populations.txt"), "w", encoding="utf-8") as file:
            file.write("short\ncost_budget-20\n")
        for columns, heading, numbers in ((57, ["members", "steps", "done"], 4), (56, ["steps", "done"], 3), (40, ["done"], 2), (30, [], 0)):
            lines, result = self.lines_on_a_terminal(columns, "status", swept)
            self.assertEqual(result.returncode, 0, result.stderr)
            table = [line.split() for line in lines[-3:]]
            self.assertEqual(table[0], ["population", *heading, "state"])
            self.assertEqual([(row[0], len(row[1:-2]), row[-2:]) for row in table[1:]],
                             [(name, numbers, ["not", "started"]) for name in ("short", "cost_budget-20")])

    def test_bytes_are_no_text_for_a_terminal(self):
        lines, result = self.lines_on_a_terminal(80, "export", RUN, "--out", "-")
        self.assertEqual((lines, result.returncode), ([], 2))
        self.assertIn(b"standard output is a terminal", result.stderr)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
