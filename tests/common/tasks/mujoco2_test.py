"""Compiles every source that uses MuJoCo against Debian's MuJoCo 2.2.2, which serves where PyPI cannot be reached.

usage: mujoco2_test.py BUILD_FOLDER COMPILER
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD, COMPILER = sys.argv[1:3]
HEADER = Path("/usr/include/mujoco/mujoco.h")
USES_MUJOCO = re.compile(r"\b(mj[A-Z]|mj[uv]?_)\w+")


def errors(source):
    words = [COMPILER, "-fsyntax-only", "-std=c++20", "-DFMT_SHARED", "-I", ROOT]
    for folder in (f"{BUILD}/proto/gen", "/usr/include/eigen3", "/usr/include/freetype2"):
        words += ["-isystem", folder]
    done = subprocess.run([*words, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout


class MujocoTwo(unittest.TestCase):
    def test_every_source_compiles_with_debians_mujoco(self):
        self.assertTrue(HEADER.exists(), f"no {HEADER}: ./datacom setup installs libmujoco-dev")
        self.assertRegex(HEADER.read_text(encoding="utf-8"), r"mjVERSION_HEADER 2\d\d\b")
        sources = [path for folder in ("actor", "common", "deploy") for path in sorted((ROOT / folder).rglob("*.cc"))
                   if USES_MUJOCO.search(path.read_text(encoding="utf-8"))]
        self.assertGreater(len(sources), 15)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            self.assertEqual("\n".join(filter(None, pool.map(errors, sources))), "")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
# SPDX-License-Identifier: Apache-2.0
