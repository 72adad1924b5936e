"""Builds the images with podman from this build's programs, then runs a training in containers that can write only to their volumes.

Skipped without podman, runc, rclone or the rights to use them. Building inside the builder stage takes minutes and needs the network, so
the test fills the root file systems with the Dockerfile's script and uses its stage `prebuilt`.
"""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import unittest

from running import BIN, PATIENCE, SOURCE, TINY, RunTest, run
from skipped import SKIPPED
from watching import Watch

MOST_BYTES = {"replay": 50e6, "actor": 60e6, "learner": 100e6, "tools": 80e6, "run": 250e6}
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")  # podman's defaults exceed the limits of a restricted machine
FOLDERS = {"replay": "/data", "learner": "/run/datacom"}


class Podman:
    """Images and containers in a private store, so that this machine's are not touched."""

    def __init__(self, folder):
        self.folder = folder

    def words(self, *arguments):
        return ["podman", "--root", os.path.join(self.folder, "store"), "--runroot", os.path.join(self.folder, "runroot"),
                "--runtime", "runc", "--cgroup-manager=cgroupfs", *arguments]

    def __call__(self, *arguments, check=True):
        result = subprocess.run(self.words(*arguments), capture_output=True, text=True, timeout=PATIENCE, check=False)
        if check and result.returncode != 0:
            raise AssertionError(" ".join(arguments) + "\n" + result.stdout + result.stderr)
        return result

    def build(self, target):
        context = os.path.join(self.folder, "context-" + target)
        script = os.path.join(SOURCE, "deploy", "docker", "make_root.sh")
        subprocess.run([script, target, BIN, os.path.join(context, "image", target)], check=True, timeout=PATIENCE)
        self("build", "--isolation=chroot", "--network=host", "--format", "docker", "--target", target,
             "--build-arg", "BINARIES=prebuilt", "--build-arg", "REVISION=of-the-test", "-t", "datacom-" + target,
             "-f", os.path.join(SOURCE, "deploy", "docker", "Dockerfile"), context)
        shutil.rmtree(context)

    def start(self, test, name, image, *arguments, volumes=()):
        """Starts a container as in the manifests: unprivileged, no capabilities, a read-only root. Its output goes to NAME.log."""
        mounts = [word for volume in volumes for word in ("--volume", volume)]
        command = self.words("run", "--rm", "--name", name, "--hostname", name, "--network=host", "--no-healthcheck", "--read-only",
                             "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges", *LIMITS, *mounts, image, *arguments)
        with open(os.path.join(self.folder, name + ".log"), "a", encoding="utf-8") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        test.addCleanup(process.wait)
        test.addCleanup(self, "rm", "--force", "--ignore", name, check=False)
        return process


def why_not():
    if os.geteuid() != 0:
        return "containers with runc need root here"
    for program in ("podman", "runc", "rclone"):
        if not shutil.which(program):
            return program + " is not installed"
    info = subprocess.run(["podman", "info"], capture_output=True, text=True, check=False)
    return "" if info.returncode == 0 else "podman does not work here: " + info.stderr[-300:]


class ImagesTest(RunTest):
    def setUp(self):
        super().setUp()
        self.podman = Podman(self.folder)

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def rows(self, name):
        text = self.read(os.path.join("run", "run", name))
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def wait(self, condition, what, *processes):
        with Watch(self.folder) as watch:
            watch.wait(lambda: condition() or any(process.poll() is not None for process in processes), PATIENCE, *(one.pid for one in processes))
        logs = "".join(f"\n--- {name}\n" + self.read(name)[-3000:] for name in sorted(os.listdir(self.folder)) if name.endswith(".log"))
        self.assertTrue(condition(), what + logs)

    def check_image(self, target):
        config, = json.loads(self.podman("image", "inspect", "datacom-" + target).stdout)
        program = "/usr/bin/datacom" if target in ("tools", "run") else "/usr/bin/datacom-" + target
        self.assertEqual(config["Config"]["Entrypoint"], [program])
        self.assertEqual(config["Config"]["User"], "10001:10001")
        labels = config["Config"]["Labels"]
        self.assertEqual(labels["org.opencontainers.image.title"], "datacom-" + target)
        self.assertEqual(labels["org.opencontainers.image.revision"], "of-the-test")
        self.assertIn(labels["org.opencontainers.image.version"], run("--version").stdout)
        self.assertEqual(labels["org.opencontainers.image.licenses"], "Apache-2.0")
        if target not in ("tools", "run"):
            self.assertEqual(config["Healthcheck"]["Test"], ["CMD", program, "--healthcheck=127.0.0.1:7000"])
        print(f"{target}: {config['Size'] / 1e6:.1f} MB")
        self.assertLess(config["Size"], MOST_BYTES[target])
        if target in FOLDERS:  # a new volume there gets its owner from the image
            container = self.podman("create", *LIMITS, "datacom-" + target).stdout.strip()
            archive = os.path.join(self.folder, target + ".tar")
            self.podman("export", "--output", archive, container)
            with tarfile.open(archive) as root:
                self.assertEqual(root.getmember(FOLDERS[target].lstrip("/")).uid, 10001)
                self.assertTrue(root.getmember("usr/share/doc/datacom/copyright").isfile())
            os.remove(archive)
        shell = self.podman("run", "--rm", "--network=none", *LIMITS, "--entrypoint", "/bin/sh", "datacom-" + target, "-c", "true",
                            check=False)
        self.assertEqual(shell.returncode, 127, "the image has a shell")

    def volume(self, name):
        """A volume: a folder of this machine that the images' user owns."""
        path = os.path.join(self.folder, name)
        os.makedirs(path)
        os.chown(path, 10001, 10001)
        return path

    def serve(self, role, *arguments):
        """Starts replay or learner and returns its process and address, which it writes into its volume."""
        folder = {"replay": "data", "learner": "run"}[role]
        file = os.path.join(folder, role + ".address")
        if os.path.exists(os.path.join(self.folder, file)):
            os.remove(os.path.join(self.folder, file))
        process = self.podman.start(self, role, "datacom-" + role, "--run-id=in-containers", "--experiment=/etc/datacom/experiment.textproto",
                                    f"--address-file={FOLDERS[role]}/{role}.address", *arguments,
                                    volumes=[f"{self.folder}/{folder}:{FOLDERS[role]}",
                                             f"{self.folder}/experiment.textproto:/etc/datacom/experiment.textproto:ro"])
        self.wait(lambda: self.read(file) != "", f"no address of the {role}", process)
        return process, self.read(file).strip()

    def act(self, name, *arguments):
        return self.podman.start(self, name, "datacom-actor", *arguments, "--run-id=in-containers", "--envs=4")

    def test_a_run_in_read_only_unprivileged_containers_is_stopped_resumed_and_reported(self):
        for target in ("replay", "actor", "learner", "tools"):
            self.podman.build(target)
            self.check_image(target)
        settings = [*TINY, "run.env_steps=6000"]
        config = run("config", "cartpole/datacom", *(word for item in settings for word in ("--set", item)))
        with open(os.path.join(self.folder, "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write(config.stdout)
        for name in ("data", "run"):
            self.volume(name)
        replay, replay_address = self.serve("replay", "--dir=/data/rings")
        learning = ("--run-dir=/run/datacom/run", "--replay=" + replay_address)
        learner, learner_address = self.serve("learner", *learning)
        peers = ["--replay=" + replay_address, "--learner=" + learner_address]
        actors = [self.act(name, "run", *peers) for name in ("actor-a", "actor-b")]
        self.wait(lambda: len(self.rows("episodes.csv")) > 0, "no episode", replay, learner, *actors)
        for role, address in (("replay", replay_address), ("learner", learner_address)):
            self.podman("exec", role, "/usr/bin/datacom-" + role, "--healthcheck=" + address)

        self.podman("stop", "--time", "60", "learner")
        self.assertEqual(learner.wait(PATIENCE), 75, self.read("learner.log"))
        learner, _ = self.serve("learner", *learning, "--listen=" + learner_address, "--resume")
        evaluator = self.act("evaluator", "evaluate", peers[1])  # started only now, because the run cannot end without an evaluator
        self.wait(lambda: learner.poll() is not None, "the learner does not end", replay)
        self.assertEqual(learner.returncode, 0, self.read("learner.log"))
        self.assertEqual([process.wait(PATIENCE) for process in (*actors, evaluator)], [0, 0, 0])
        self.podman("kill", "--signal", str(int(signal.SIGTERM)), "replay")
        self.assertEqual(replay.wait(PATIENCE), 0, self.read("replay.log"))
        self.assertEqual({row["env_steps"] for row in self.rows("progress.csv") if row["epoch"] == "6"}, {"6000"})
        self.assertEqual(sorted(set(re.findall(r"actor registered actor=(\S+) session=", self.read("replay.log")))), ["actor-a", "actor-b"])

        volumes = [f"{self.folder}/run:/run/datacom"]
        report = self.podman.start(self, "tools", "datacom-tools", "report", "run", "--out", "report.html", volumes=volumes)
        self.assertEqual(report.wait(PATIENCE), 0, self.read("tools.log"))
        self.assertGreater(os.path.getsize(os.path.join(self.folder, "run", "report.html")), 10000)
        sweeps = self.podman.start(self, "sweep", "datacom-tools", "sweep", "cartpole/cost_budgets", "--backend", "kubernetes", "--run-dir", "sweep",
                                   volumes=volumes)
        self.assertEqual(sweeps.wait(PATIENCE), 0, self.read("sweep.log"))
        self.assertIn("kind: Kustomization", self.read("run/sweep/kustomization.yaml"))

    def test_a_run_in_one_container_goes_on_from_its_archive_in_the_next(self):
        self.podman.build("run")
        self.check_image("run")
        with open(os.path.join(self.folder, "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write(run("config", "cartpole/datacom", *(word for item in [*TINY, "run.env_steps=6000"] for word in ("--set", item))).stdout)
        self.volume("bucket")

        def pod(name, steps):
            """What a pod of deploy/kubernetes/archive.yaml.in does, with a folder in the bucket's place."""
            volumes = [f"{self.volume(name)}:/run/datacom", f"{self.folder}/bucket:/bucket",
                       f"{self.folder}/experiment.textproto:/etc/datacom/experiment.textproto:ro"]
            prepare = self.podman.start(self, name + "-prepare", "datacom-run", "config", "/etc/datacom/experiment.textproto",
                                        "--out=/run/datacom/run/experiment.textproto", volumes=volumes)
            self.assertEqual(prepare.wait(PATIENCE), 0, self.read(name + "-prepare.log"))
            train = self.podman.start(self, name, "datacom-run", "train", "--resume", "--run-dir=/run/datacom/run", "--archive=/bucket/run",
                                      f"--steps={steps}", "--actors=2", "--no-film", volumes=volumes)
            self.assertEqual(train.wait(PATIENCE), 0, self.read(name + ".log"))
        pod("first", 3000)
        pod("second", 6000)
        self.assertIn("of run ", self.read("second.log"))
        self.assertIn(" from /bucket/run", self.read("second.log"))
        self.assertIn(",6000,", self.read("second/run/progress.csv"))
        found = self.podman("run", "--rm", "--network=none", *LIMITS, "--entrypoint", "/usr/bin/rclone", "datacom-run", "version")
        self.assertIn("rclone v", found.stdout)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(SKIPPED)
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
