"""Renders every shipped sweep on every backend."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

DATACOM = os.path.abspath(sys.argv.pop(1))
# Options of a backend, and the files that it writes into the sweep's folder.
BACKENDS = {("--render-only",): [],
            ("--backend", "kubernetes", "--actors", "4", "--images", "registry.example.org/team:1.0"): ["kustomization.yaml"],
            ("--backend", "kubernetes", "--plain"): ["kustomization.yaml"], ("--backend", "slurm", "--jobs", "8"): ["sweep.sbatch"],
            ("--backend", "slurm", "--jobs", "4", "--join", "16"): ["sweep.sbatch", "actors.sbatch"], ("--backend", "list"): ["jobs.txt"]}


class SweepBackends(unittest.TestCase):
    def test_every_shipped_sweep_renders_on_every_backend(self):
        listed = subprocess.run([DATACOM, "list", "sweeps"], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        names = [line.split()[0] for line in listed.splitlines() if "/" in line.split(" ")[0]]
        shipped = pathlib.Path(ROOT, "deploy", "sweeps").glob("*/*.textproto")
        self.assertEqual(sorted(names), sorted(f"{path.parent.name}/{path.stem}" for path in shipped))
        with tempfile.TemporaryDirectory(prefix="datacom-sweeps-") as folder, concurrent.futures.ThreadPoolExecutor(4) as threads:
            def render(number, name, options):
                into = os.path.join(folder, str(number))
                return into, subprocess.run([DATACOM, "sweep", name, *options, "--run-dir", into], capture_output=True, text=True, check=False,
                                            cwd=ROOT, timeout=PATIENCE)
            calls = [(name, options) for name in names for options in BACKENDS]
            renderings = [threads.submit(render, number, *call) for number, call in enumerate(calls)]  # they wait for the disk, not for each other
            for (name, options), rendering in zip(calls, renderings):
                with self.subTest(f"datacom sweep {name} {' '.join(options)}"):
                    into, done = rendering.result()
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertLessEqual(set(BACKENDS[options]), set(os.listdir(into)))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
