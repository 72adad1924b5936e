#!/usr/bin/env python3
"""The installed package serves plug-ins and robots outside of the tree.

  plugin_test.py BUILD COMPILER

Installs BUILD into a folder, moves it, compiles deploy/examples/plugin and a program for robots against it, in other folders, and trains the
example's task with its algorithm.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD, COMPILER = Path(sys.argv.pop(1)).resolve(), sys.argv.pop(1)
TINY = [f"--set={item}" for item in [
    "network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "replay.min_size=200", "run.steps_per_epoch=500", "run.eval_episodes=2"]]
ROBOT = """
#include <datacom_policy.h>
#include <stdio.h>
int main(void) {
  struct datacom_policy* policy = NULL;
  char why[200];
  const int code = datacom_policy_load("no_such_file", &policy, why, sizeof why);
  printf("%d %s\\n", code == DATACOM_POLICY_UNREADABLE, why);
  return 0;
}
"""
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("DATACOM_")}


def call(*words, code=0, **options):
    done = subprocess.run([str(word) for word in words], text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**ENVIRONMENT, **options.pop("env", {})}, **options)
    assert done.returncode == code, f"{words} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


class Plugin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.prefix = cls.folder / "moved"
        call("cmake", "--install", BUILD, "--prefix", cls.folder / "installed")
        (cls.folder / "installed").rename(cls.prefix)
        shutil.copytree(cls.prefix / "share/datacom/examples/plugin", cls.folder / "example")
        call("cmake", "-G", "Ninja", "-S", cls.folder / "example", "-B", cls.folder / "built", f"-DCMAKE_PREFIX_PATH={cls.prefix}", f"-DCMAKE_CXX_COMPILER={COMPILER}")
        call("cmake", "--build", cls.folder / "built")
        cls.plugin = cls.folder / "built/pendulum.so"
        cls.run_dir = cls.folder / "run"
        cls.datacom("train", "pendulum", "--algorithm", "braked_sac", "--steps", "1000", "--run-dir", cls.run_dir, "--no-film", *TINY, "--plugin", cls.plugin)

    @classmethod
    def datacom(cls, *words, code=0, env=None):
        return call(cls.prefix / "bin/datacom", *words, code=code, env=env or {}, cwd=cls.folder)

    def test_lists_what_the_plugin_adds_and_nothing_without_it(self):
        tasks = self.datacom("list", "tasks", "--plugin", "built/pendulum.so")  # relative to the working directory
        self.assertRegex(tasks, "(?m)^pendulum +Swing up a pendulum")
        self.assertIn("\nbraked_sac ", self.datacom("list", "algorithms", env={"DATACOM_PLUGINS": str(self.plugin)}))
        self.assertNotIn("pendulum", self.datacom("list"))

    def test_trains_and_plays_its_task_with_its_rule_and_its_algorithm(self):
        rows = self.datacom("eval", self.run_dir, "--csv", f"--plugin={self.plugin}").splitlines()
        self.assertEqual(len(rows), 3, rows)
        exported = self.datacom("export", self.run_dir, "--out", "exported.policy", "--plugin", self.plugin)
        self.assertIn("acting rule brake", exported)
        script = ("import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); policy, why = ctypes.c_void_p(), ctypes.create_string_buffer(400);"
                  "library.datacom_policy_load(sys.argv[2].encode(), ctypes.byref(policy), why, 400); print(why.value.decode())")
        refused = call(sys.executable, "-c", script, self.prefix / "lib/libdatacom_policy.so", self.folder / "exported.policy")
        self.assertIn("needs the plug-in pendulum, and this library loads none", refused)

    def test_d_atacom_acts_by_the_tasks_own_dynamics(self):
        self.datacom("train", "pendulum", "--algorithm", "datacom", "--steps", "600", "--run-dir", self.folder / "datacom", "--no-film", "--quiet",
                     *TINY, "--set=network.constraint_hidden=[16,16]", "--set=run.steps_per_epoch=300", "--plugin", self.plugin)
        self.assertTrue((self.folder / "datacom/report.html").is_file())

    def test_a_run_names_the_plugin_that_it_needs_and_loads_none(self):
        self.assertIn('[datacom.v1.plugin]: "pendulum"', (self.run_dir / "experiment.textproto").read_text())
        needs = "this needs the plug-in pendulum, which is not loaded: --plugin PATH/pendulum.so"
        self.assertIn(needs, self.datacom("train", "--run-dir", self.run_dir, "--resume", "--steps", "1500", code=2))
        self.assertIn(needs, self.datacom("eval", self.run_dir, code=2))
        self.datacom("train", "--run-dir", self.run_dir, "--resume", "--steps", "1500", "--no-film", "--plugin", self.plugin)

    def test_the_runs_of_a_sweep_name_the_plugin_that_they_need(self):
        (self.folder / "braked.textproto").write_text('name: "braked" task: "pendulum" algorithm: "braked_sac"')
        (self.folder / "two.textproto").write_text('name: "two" experiments: "braked.textproto"')
        self.datacom("sweep", "two.textproto", "--seeds", "0-1", "--steps", "5000", "--render-only", "--run-dir", "planned",
                     "--plugin", self.plugin)
        self.assertIn('[datacom.v1.plugin]: "pendulum"', (self.folder / "planned/braked/experiment.textproto").read_text())

    def test_manifests_say_that_the_images_lack_the_plugin(self):
        said = self.datacom("train", "pendulum", "--algorithm", "braked_sac", "--backend", "kubernetes", "--run-dir", self.folder / "pods",
                            "--plugin", self.plugin)
        self.assertIn("the images do not have the plug-in pendulum: put its files into yours, and name pendulum.so in their environment variable "
                      "DATACOM_PLUGINS\n", said)

    def test_a_plugin_of_another_version_is_refused_by_name_before_it_runs(self):
        other = self.folder / "other.so"
        content = self.plugin.read_bytes()
        self.assertEqual(content.count(b"datacom plug-in for: 0."), 1)
        other.write_bytes(content.replace(b"datacom plug-in for: 0.", b"datacom plug-in for: 9."))
        said = self.datacom("list", "--plugin", other, code=2)
        self.assertRegex(said, r'plug-in \S*/other\.so: built for "9\..*", but this program is "0\.')
        call(self.prefix / "bin/datacom-replay", "--experiment", "x", code=2, env={"DATACOM_PLUGINS": str(other)})

    def test_a_file_that_is_missing_or_no_plugin_is_refused_by_name(self):
        self.assertIn("/absent.so: open", self.datacom("list", "--plugin", "absent.so", code=2))
        library = self.prefix / "lib/libdatacom_policy.so"
        self.assertIn("libdatacom_policy.so: this is no plug-in of datacom", self.datacom("list", "--plugin", library, code=2))
        self.assertIn("name the file of a plug-in", self.datacom("list", "--plugin", code=2))

    def test_a_name_that_is_taken_ends_the_program(self):
        copy = self.folder / "copy.so"
        shutil.copy(self.plugin, copy)
        self.assertIn("two tasks are registered as pendulum", self.datacom("list", "--plugin", self.plugin, "--plugin", copy, code=2))

    def test_the_library_for_python_steps_the_task(self):
        script = ("import ctypes, os, sys; library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND);"
                  "made, why = ctypes.c_void_p(), ctypes.create_string_buffer(400);"
                  "print(library.datacom_env_make(sys.argv[2].encode(), b'', 2, 1, 0, ctypes.byref(made), why, 400), why.value.decode())")
        library = self.prefix / "lib/libdatacom_python.so"
        self.assertEqual(call(sys.executable, "-c", script, library, "pendulum", env={"DATACOM_PLUGINS": str(self.plugin)}), "0 \n")
        self.assertIn('task "pendulum" does not exist', call(sys.executable, "-c", script, library, "pendulum"))

    def test_a_program_for_robots_compiles_with_pkg_config_and_with_cmake(self):
        robot = self.folder / "robot"
        robot.mkdir()
        (robot / "robot.c").write_text(ROBOT)
        (robot / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(robot LANGUAGES C)\nfind_package(datacom REQUIRED)\n"
                                              "add_executable(robot robot.c)\ntarget_link_libraries(robot PRIVATE datacom::policy)\n")
        call("cmake", "-G", "Ninja", "-S", robot, "-B", robot / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        call("cmake", "--build", robot / "build")
        self.assertRegex(call(robot / "build/robot"), "^1 .*no_such_file")
        flags = call("pkg-config", "--cflags", "--libs", "datacom_policy", env={"PKG_CONFIG_PATH": str(self.prefix / "lib/pkgconfig")}).split()
        call("cc", robot / "robot.c", *flags, "-o", robot / "robot", f"-Wl,-rpath,{self.prefix}/lib")
        self.assertRegex(call(robot / "robot"), "^1 .*no_such_file")


if __name__ == "__main__":
    unittest.main(verbosity=2)
# SPDX-License-Identifier: Apache-2.0
