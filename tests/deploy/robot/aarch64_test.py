#!/usr/bin/env python3
"""The robot's library for 64-bit ARM acts as the one for x86-64.

  aarch64_test.py BUILD FOLDER [Wheel]

Builds the library of BUILD for ARM into FOLDER (deploy/dev/policy_library_aarch64) and runs it in qemu-user-static, without any library of
Debian for ARM but glibc and those of GCC. The policies come from trainings of a few seconds. Of the wheel for ARM it builds
only the learner's kernels. With the word Wheel it tests these kernels instead, builds the wheel and trains with it; that takes an hour.
"""

import array
import csv
import math
import random
import re
import shutil
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/testing"), str(ROOT / "deploy/dev")]
import aarch64  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402

BUILD, FOLDER = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
QEMU = ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"]
SCRIPT = ROOT / "deploy/dev/policy_library_aarch64"
UNREACHABLE = re.compile("Temporary failure|Could not connect|Could not resolve|Unable to connect|Connection failed|Network is unreachable|"
                         "Failed to establish a new connection|Could not find a version|connection broken")
LARGEST = 1e-6  # difference of an action; of a judgement, relative to the larger of 1 and its value
OBSERVATIONS = 3000
# In lockstep a training gives the same policy every time. The threshold makes the constraint active in many observations.
SETTINGS = ["run.lockstep=true", "run.eval_episodes=1"]
FILTERED = ["run.steps_per_epoch=2000", "hyper.init_delta=0.5"]
# A decision of the paper's planner takes seconds in QEMU.
SMALL_PLANNER = ["run.steps_per_epoch=300", "planning.random_rows=250", "planning.model_period=100", "planning.policy_updates=5", "planning.ensemble=2",
                 "planning.hidden=[32,32]", "planning.samples=20", "planning.particles=1", "planning.iterations=3"]


def run(*words, code=0, **options):
    done = subprocess.run([str(word) for word in words], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def skip(reason):
    """Ends the program as skipped as a whole: unittest would count no test."""
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def setUpModule():
    for program, package in {"aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu", QEMU[0]: "qemu-user-static"}.items():
        if not shutil.which(program):
            skip(f"there is no {program} (Debian: {package})")
    if re.search("lib[at]san", run("ldd", BUILD / "lib/libdatacom_policy.so")):
        skip("a library for ARM has no sanitizers")


class Library(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        built = subprocess.run([SCRIPT, "--build", BUILD, "--out", FOLDER, "--tests"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if built.returncode != 0 and UNREACHABLE.search(built.stdout):
            skip("Debian's mirror cannot be reached: it has the libraries for ARM")
        assert built.returncode == 0, built.stdout
        cls.runs = FOLDER / "runs"
        shutil.rmtree(cls.runs, ignore_errors=True)
        for task in ["cartpole", "air_hockey", "navigation"]:
            cls.train(f"{task}/datacom", 4000, SETTINGS + FILTERED)
            run(BUILD / "bin/datacom", "export", cls.runs / task / "datacom", "--format", "onnx", "--pairs", OBSERVATIONS, "--out", cls.runs / f"{task}.onnx")

    @classmethod
    def train(cls, experiment, steps, settings):
        words = [word for setting in settings for word in ("--set", setting)]
        run(BUILD / "bin/datacom", "train", experiment, "--no-film", "--seeds", 1, "--steps", steps, "--run-dir", cls.runs / experiment, *words)
        run(BUILD / "bin/datacom", "export", cls.runs / experiment, "--out", cls.runs / f"{experiment}.policy")

    def observations(self, task):
        """From episodes of the policy, each with noise as in training."""
        with open(self.runs / f"{task}.pairs.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        return [[float(value) for name, value in row.items() if name.startswith("observation_")] for row in rows]

    def answers(self, driver, experiment, observations):
        """What policy_driver answers: (task and rule, a list of action and judgement for each observation)."""
        policy = self.runs / f"{experiment}.policy"
        about = subprocess.run([*driver, policy], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout.decode().split()
        actions, noises = int(about[-2]), int(about[-1])
        normal = random.Random(1)
        frames = b"".join(array.array("d", values).tobytes() + array.array("f", [normal.gauss(0, 1) for _ in range(noises)]).tobytes() + bytes(8)
                          for values in observations)
        answer = subprocess.run([*driver, policy], check=True, input=frames, stdout=subprocess.PIPE).stdout.split(b"\n", 1)[1]
        numbers, width = array.array("d", answer), actions + 3
        self.assertEqual(len(numbers), width * len(observations))
        return about, [(numbers[at:at + actions], numbers[at + actions:at + width]) for at in range(0, len(numbers), width)]

    def compare(self, experiment, observations):
        """Compares the libraries. Returns for each observation how far the actions differ and how far the filter changed the action."""
        about, want = self.answers([BUILD / "tests/policy_driver"], experiment, observations)
        about_arm, got = self.answers([*QEMU, FOLDER / "tests/policy_driver"], experiment, observations)
        self.assertEqual(about_arm, about)
        differences = [max(abs(a - b) for a, b in zip(one, other)) for (one, _), (other, _) in zip(want, got)]
        judged = [(a, b) for (_, one), (_, other) in zip(want, got) for a, b in zip(one, other)]
        self.assertEqual([math.isnan(a) for a, _ in judged], [math.isnan(b) for _, b in judged])
        judgement = max(abs(a - b) / max(1, abs(a)) for a, b in judged if not math.isnan(a))
        print(f"{experiment}: {len(want)} observations, {differences.count(0)} actions with the same bits, largest difference {max(differences):.1e}, "
              f"of judgements {judgement:.1e}", flush=True)
        self.assertLessEqual(judgement, LARGEST)
        return differences, [judgement[2] for _, judgement in want]

    def test_acts_as_the_library_for_x86_64_where_the_filter_is_active(self):
        for task in ["cartpole", "air_hockey", "navigation"]:
            with self.subTest(task):
                differences, changes = self.compare(f"{task}/datacom", self.observations(task))
                self.assertEqual(len(differences), OBSERVATIONS)
                self.assertLessEqual(max(differences), LARGEST)
                self.assertGreater(sum(change > 1e-3 for change in changes), OBSERVATIONS / 2)

    def test_plans_as_the_library_for_x86_64_with_the_same_normals(self):
        self.train("air_hockey/safe_loop", 300, SETTINGS + SMALL_PLANNER)
        differences, _ = self.compare("air_hockey/safe_loop", self.observations("air_hockey")[:100])
        # A plan continues the one before it, and rounding may change which of two equally good ones is kept.
        self.assertLessEqual(sorted(differences)[89], LARGEST)
        self.assertLessEqual(max(differences), 1e-3)

    def test_products_have_the_same_bits_and_normals_the_same_words_on_arm(self):
        printed = run(*QEMU, FOLDER / "tests/nn_test")
        for name in ["Multiply.EveryInstructionSetGivesTheBitsOfOneChainOfFusedMultiplyAdds", "Normals.AreBoxMullerOnTheWordsOfTheScalarGenerator"]:
            self.assertIn(f"[       OK ] {name} ", printed)

    def test_needs_no_newer_system_than_the_wheel(self):
        run("sha256sum", "--check", "--strict", "SHA256SUMS", cwd=FOLDER)
        symbols = "".join(run("aarch64-linux-gnu-objdump", "-T", path) for path in FOLDER.glob("*.so.*"))
        for library, newest in {"GLIBC": (2, 34), "GLIBCXX": (3, 4, 29)}.items():
            needed = {tuple(map(int, version.split("."))) for version in re.findall(rf"\b{library}_([\d.]+)", symbols)}
            self.assertLessEqual(max(needed), newest)

    def test_exports_only_its_interface(self):
        names = run("aarch64-linux-gnu-nm", "-D", "--defined-only", FOLDER / "libdatacom_policy.so").split()[2::3]
        self.assertEqual(sorted(names), [f"datacom_policy_{verb}" for verb in ("act", "begin", "describe", "filter", "free", "load", "use_shield", "why")])

    def test_the_script_names_what_is_missing(self):
        self.assertIn("none/lib/libdatacom_policy.so.1.1.0 is missing: run ./datacom build", run(SCRIPT, "--build", FOLDER / "none", code=1))


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.out = FOLDER / "programs"
        try:
            aarch64.fetch_sysroot(cls.out / "sysroot", aarch64.OF_PROGRAMS)
        except SystemExit as error:
            if UNREACHABLE.search(str(error)):
                skip("Debian's mirror or PyPI cannot be reached: they have the libraries for ARM")
            raise

    def test_each_step_of_the_wheel_has_its_files_and_libraries_for_arm_and_the_kernels_compile(self):
        programs = [f"bin/datacom{role}" for role in ("", "-actor", "-learner", "-replay", "-tools")]
        every, wanted = {}, set()
        for target in [*programs, "lib/libdatacom_python.so", aarch64.POLICY]:
            every.update(aarch64.steps(BUILD, target, self.out / "sysroot"))
            wanted.update(re.findall(r" /\S+/(lib\S+\.so\S*)", run("ninja", "-C", BUILD, "-t", "commands", target)))
        for made, (needed, command) in every.items():
            self.assertNotRegex(command, r"x86| -m[a-z]", made)
            self.assertEqual([file for file in needed if file not in every and not (BUILD / file).exists()], [], made)
        missing = {library for library in wanted if not aarch64.find(library, self.out / "sysroot")}
        self.assertLessEqual(missing, {"libz.so"})  # no program loads it by itself
        kernels = [made for made in every if "/nn/cpu/" in made]
        self.assertTrue(kernels)
        aarch64.write_steps(every, self.out / "steps")
        run("ninja", "-C", self.out / "steps", *kernels)


class Wheel(unittest.TestCase):
    def test_products_and_loops_have_the_bits_of_their_definitions(self):
        out, target = FOLDER / "wheel/aarch64", "tests/core_products_test"
        aarch64.build_for_arm(BUILD, out, aarch64.OF_PROGRAMS, [target])
        libraries = ":".join(str(out / "sysroot" / folder) for folder in aarch64.FOLDERS)
        self.assertIn("[  PASSED  ]", run(*QEMU, "-E", f"LD_LIBRARY_PATH={libraries}", out / "steps" / target))

    def test_trains_and_acts_on_arm(self):
        out, root = FOLDER / "wheel", FOLDER / "wheel/installed"
        run(ROOT / "deploy/dev/wheel", "--arch", "aarch64", "--build", BUILD, "--out", out)
        shutil.rmtree(root, ignore_errors=True)
        zipfile.ZipFile(next(out.glob("*_aarch64.whl"))).extractall(root)
        shutil.copy(aarch64.find("libz.so.1", out / "aarch64/sysroot"), root)
        # The kernel starts no program for ARM, so scripts stand in the places of those that others start.
        for program in sorted((root / "datacom/bin").iterdir()):
            real = program.rename(f"{program}.aarch64")
            program.write_text(f'#!/bin/sh\nexec {" ".join(QEMU)} -E LD_LIBRARY_PATH={root} {real} "$@"\n')
            program.chmod(0o755)
            real.chmod(0o755)
            self.assertIn(" MuJoCo ", run(program, "--version"))
        datacom = root / "datacom/bin/datacom"
        self.assertIn("air_hockey/limits_known", run(datacom, "list"))
        run(datacom, "train", "cartpole/datacom", "--no-film", "--seeds", 1, "--steps", 600, "--run-dir", root / "run",
            *(word for setting in ["run.steps_per_epoch=300", "replay.min_size=200", *SETTINGS] for word in ("--set", setting)))
        self.assertIn("arithmetic neon\n", (root / "run/build.txt").read_text())
        self.assertRegex(run(datacom, "eval", root / "run", "--episodes", 2), r"(?i)return")


if __name__ == "__main__":
    unittest.main(verbosity=2, defaultTest=["Library", "Programs"])
# SPDX-License-Identifier: Apache-2.0
