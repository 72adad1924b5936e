"""Runs the shipped Compose files with a private Docker daemon, each role in a container with its own address and name.

A test cannot use registries: Prometheus is this machine's, put into an image with the name that the file uses, and Grafana is left
out. Skipped without Docker's daemon, Compose, Prometheus, a static busybox, or the rights to use them.
"""
import csv
import json
import os
import shutil
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

from running import BIN, PATIENCE, SOURCE, TINY, RunTest, run
from skipped import SKIPPED
from watching import Watch

sys.path.insert(0, os.path.join(SOURCE, "tests", "deploy"))
import docker_compose  # noqa: E402  the path comes first

NEEDED = ("dockerd", "containerd", "prometheus", "busybox", "openssl")
SERVICES = ("replay", "learner", "actor", "evaluator", "prometheus")


def builder():
    """The path of a docker client with BuildKit (buildx, or an old client that includes it); None when there is none."""
    for client in ("docker", "/usr/bin/docker"):
        path = shutil.which(client)
        if path and (call([path, "buildx", "version"]).returncode == 0 or "version 20." in call([path, "--version"]).stdout):
            return path
    return None


def why_not():
    if os.geteuid() != 0:
        return "Docker's daemon needs root here"
    for program in NEEDED:
        if not shutil.which(program):
            return program + " is not installed"
    if "not a dynamic executable" not in call(["ldd", shutil.which("busybox")]).stderr:
        return "busybox is not static (apt-get install busybox-static)"
    return docker_compose.why_not() or ("" if builder() else "no docker client with BuildKit")


def call(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, **options)


class ComposeTest(RunTest):
    def setUp(self):
        super().setUp()
        self.watched = os.path.join(self.folder, "watched")
        self.volumes = os.path.join(self.folder, "data", "volumes")
        for folder in (self.watched, self.volumes):
            os.makedirs(folder)
        self.environment = {**os.environ, "DOCKER_HOST": f"unix://{self.watched}/docker.sock", "DOCKER_BUILDKIT": "1"}
        self.log = os.path.join(self.folder, "dockerd.log")
        with open(self.log, "w", encoding="utf-8") as log:
            daemon = subprocess.Popen(["dockerd", "--host", self.environment["DOCKER_HOST"], "--data-root", os.path.join(self.folder, "data"),
                                       "--exec-root", os.path.join(self.folder, "exec"), "--pidfile", os.path.join(self.folder, "pid"),
                                       "--bridge=none"], stdout=log, stderr=log)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        with Watch(self.watched) as watch:
            watch.wait(lambda: os.path.exists(os.path.join(self.watched, "docker.sock")), PATIENCE, daemon.pid)
        if daemon.poll() is not None or self.docker("info", check=False).returncode != 0:
            with open(self.log, encoding="utf-8") as log:
                self.skipTest("Docker's daemon does not work here: " + log.read()[-600:])

    def docker(self, *arguments, check=True, client="docker"):
        return self.succeed(call([client, *arguments], env=self.environment), check)

    def compose(self, *arguments, check=True):
        return self.succeed(call([*self.command, *arguments], env=self.environment), check)

    def succeed(self, result, check):
        self.assertTrue(not check or result.returncode == 0, f"{result.args}\n{result.stdout}{result.stderr}")
        return result

    def build(self, target):
        context = os.path.join(self.folder, "context-" + target)
        subprocess.run([os.path.join(SOURCE, "deploy", "docker", "make_root.sh"), target, BIN, os.path.join(context, "image", target)], check=True)
        self.docker("build", "--target", target, "--build-arg", "BINARIES=prebuilt", "-t", "datacom-" + target,
                    "-f", os.path.join(SOURCE, "deploy", "docker", "Dockerfile"), context, client=builder())
        shutil.rmtree(context)

    def build_prometheus(self):
        root = os.path.join(self.folder, "prometheus")
        libraries = [word for word in call(["ldd", shutil.which("prometheus")]).stdout.split() if word.startswith("/")]
        for path, place in [(shutil.which("prometheus"), "/bin/prometheus"), (shutil.which("busybox"), "/bin/busybox"), *((one, one) for one in libraries)]:
            os.makedirs(os.path.dirname(root + place), exist_ok=True)
            shutil.copy(path, root + place)
        os.symlink("busybox", root + "/bin/wget")  # the file's health check calls it
        os.makedirs(root + "/prometheus")
        os.chown(root + "/prometheus", 65534, 65534)
        archive = root + ".tar"
        subprocess.run(["tar", "--create", "--file", archive, "--directory", root, "."], check=True)
        self.docker("import", "--change", 'ENTRYPOINT ["/bin/prometheus"]', "--change", "USER 65534", archive, "prom/prometheus:v2.42.0")

    def prepare(self, files, *settings):
        """Makes the images, an experiment, and a project named after the run; sets `command`."""
        for target in ("replay", "actor", "learner", "tools"):
            self.build(target)
        self.build_prometheus()
        config = run("config", "cartpole/datacom", *(word for item in (*TINY, *settings) for word in ("--set", item)))
        path = os.path.join(self.folder, "experiment.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config.stdout)
        self.environment.update(DATACOM_EXPERIMENT=path, DATACOM_RUN="composed", DATACOM_PROMETHEUS_PORT="0", COMPOSE_PROFILES="cpu")
        self.command = docker_compose.words(files, self.folder, "-p", "composed")
        self.addCleanup(self.compose, "down", "--volumes", "--timeout", "1", check=False)

    def up(self, *options):
        self.compose("up", "--detach", "--no-build", *options, *SERVICES)

    def rows(self, name):
        try:
            with open(os.path.join(self.volumes, "composed_run", "_data", "run", name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def logs(self, service="", lines=40):
        """The last log lines of the service's containers, or of all containers."""
        names = self.docker("ps", "--all", "--format", "{{.Names}}", "--filter", "name=" + service).stdout.split()
        return "".join(f"\n--- {name}\n" + "".join(self.docker("logs", name, check=False).stderr.splitlines(True)[-lines:]) for name in names)

    def wait(self, condition, what, *processes):
        with Watch(self.volumes) as watch:
            watch.wait(lambda: condition() or any(process.poll() is not None for process in processes), PATIENCE, *(one.pid for one in processes))
        self.assertTrue(condition(), what + self.logs())

    def containers(self, service):
        ended_too = ["--all"] if docker_compose.second() else []  # version 1 always lists them
        return self.compose("ps", "-q", *ended_too, service).stdout.split()

    def states(self, service):
        return [json.loads(self.docker("inspect", "--format", "{{json .State}}", one).stdout) for one in self.containers(service)]

    def ask(self, query):
        """The values of an instant query, by the label `role`."""
        port = self.compose("port", "prometheus", "9090").stdout.strip().rsplit(":", 1)[1]
        url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return {one["metric"]["role"]: float(one["value"][1]) for one in json.load(answer)["data"]["result"]}
        except (urllib.error.URLError, ConnectionError):
            return {}

    def wait_for_the_end(self):
        """Waits until the learner's container has exited by itself with 0."""
        learner, = self.containers("learner")
        waiting = subprocess.Popen(["docker", "wait", learner], stdout=subprocess.PIPE, text=True, env=self.environment)
        self.addCleanup(waiting.stdout.close)
        self.addCleanup(waiting.wait)
        self.addCleanup(waiting.kill)
        self.wait(lambda: waiting.poll() is not None, "the learner does not end")
        self.assertEqual(waiting.stdout.read().strip(), "0", self.logs())

    def test_a_run_is_brought_up_watched_scaled_stopped_resumed_and_reported(self):
        self.prepare(["compose.yaml"], "run.env_steps=160000")
        self.up()
        self.wait(lambda: len(self.rows("episodes.csv")) > 0, "no episode")
        self.assertEqual([state["Health"]["Status"] for state in self.states("replay")], ["healthy"])
        everyone = {"replay": 1, "learner": 1, "actor": 2, "evaluator": 1}
        self.wait(lambda: self.ask("sum by (role) (up)") == everyone, "Prometheus does not find everyone")

        self.up("--scale", "actor=3", "--no-recreate")
        self.wait(lambda: {row["session"] for row in self.rows("episodes.csv")} == {"1", "2", "3"}, "no episode of a third actor")

        self.compose("stop")
        for service in ("replay", "learner", "actor", "evaluator"):
            self.assertEqual({state["ExitCode"] for state in self.states(service)}, {75}, service + self.logs(service))
        before = len(self.rows("episodes.csv"))
        self.assertLess(len(self.rows("progress.csv")), 161, "the run ended before it was stopped")
        self.up("--scale", "actor=3", "--no-recreate")
        self.wait_for_the_end()
        self.assertIn("incarnation=2", self.logs("learner", 10**6))
        self.assertGreater(len(self.rows("episodes.csv")), before)
        self.assertEqual(self.rows("progress.csv")[-1]["env_steps"], "160000")

        self.compose("run", "--rm", "tools", "report", "/run/datacom/run", "--out", "/run/datacom/run/report.html")
        self.assertGreater(os.path.getsize(os.path.join(self.volumes, "composed_run", "_data", "run", "report.html")), 10000)

    def test_a_run_over_mutual_tls_is_brought_up_and_ends(self):
        tls = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), tls], check=True)
        for name, owner in (("tls.key", 10001), ("token", 10001), ("prometheus.key", 65534)):
            os.chown(os.path.join(tls, name), owner, -1)
        self.environment["DATACOM_TLS"] = tls
        self.prepare(["compose.yaml", "compose.secure.yaml"], "run.env_steps=120000")
        self.up()
        self.wait(lambda: self.ask("up == 1").keys() == {"replay", "learner", "actor", "evaluator"}, "Prometheus scrapes too few")
        self.wait_for_the_end()
        self.assertEqual(self.rows("progress.csv")[-1]["env_steps"], "120000")
        self.assertNotIn("in plain text", self.logs())


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print("skipped:", reason)
        sys.exit(SKIPPED)
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
