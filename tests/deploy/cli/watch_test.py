"""Tests `datacom watch` over HTTP: its events while the files of runs grow, who may read them, and that it changes no file.

usage: watch_test.py DATACOM [unittest arguments]. tests/e2e/watch_page_test.py tests the page in a browser.
"""
import contextlib
import copy
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first
from watched_runs import Stream, Watching, WrittenRun  # noqa: E402

DATACOM = os.path.abspath(sys.argv.pop(1))


def listing(folder):
    """Every file with size and times."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            about = os.stat(os.path.join(at, name))
            found[os.path.join(at, name)] = (about.st_size, about.st_mtime_ns, about.st_ino)
    return found


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-watch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run(self, result=None):
        with contextlib.ExitStack() as self.ends:
            return super().run(result)

    def written(self, name, *arguments):
        return WrittenRun(DATACOM, os.path.join(self.folder, name), *arguments)

    def watch(self, *arguments):
        return self.ends.enter_context(Watching(DATACOM, *arguments))

    def stream(self, watching):
        return self.ends.enter_context(Stream(watching.address))

    def refused(self, *arguments):
        done = subprocess.run([DATACOM, "watch", *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def test_a_growing_run_sends_its_new_points_as_changes(self):
        run = self.written("run")
        watching = self.watch(run.folder)
        stream = self.stream(watching)
        state = stream.wait(lambda state: True)
        self.assertEqual(state["report"]["groups"], [])
        self.assertEqual([(one["folder"], one["state"], one["done"]) for one in state["runs"]], [(run.folder, "not running", 0)])
        for epoch in (0, 1, 2):
            run.add_epoch(epoch, returns=(10 * epoch, 10 * epoch + 4))
            state = stream.wait(lambda state: state["report"]["groups"] and state["report"]["groups"][0]["members"][0]["epoch"] == epoch)
            points = state["report"]["groups"][0]["series"]["eval_return"]
            self.assertEqual([point[:2] + point[6:] for point in points],
                             [[1000 * one, 10 * one + 2, 10 * one, 10 * one + 4] for one in range(epoch + 1)], "steps, mean and both members")
        self.assertEqual(state["runs"][0]["done"], 0.2)
        self.assertEqual(stream.names[0], "state")
        self.assertEqual(stream.names[-1], "patch")
        self.assertEqual(self.stream(watching).wait(lambda other: True), state, "a page that is opened later shows the same")

    def test_each_member_can_have_its_curve(self):
        run = self.written("run")
        run.add_epoch(0, returns=(1, 2))
        state = self.stream(self.watch(run.folder, "--each-member")).wait(lambda state: True)
        groups = state["report"]["groups"]
        self.assertEqual([(group["title"], group["series"]["eval_return"]) for group in groups],
                         [("cartpole/datacom, seed 0", [[0, 1]]), ("cartpole/datacom, seed 1", [[0, 2]])])
        self.assertNotEqual(groups[0]["colour"], groups[1]["colour"])

    def test_the_violations_of_the_ledger_are_counted(self):
        run = self.written("run")
        stream = self.stream(self.watch(run.folder))
        self.assertEqual(stream.wait(lambda state: True)["runs"][0]["violations_total"], 0)
        run.add_violations(1, 2000)  # a file that is read only in part
        with open(run.violations, "a", encoding="utf-8") as file:
            file.write("2001,1,1,act")  # a line that is still being written
        stream.wait(lambda state: state["runs"][0]["violations_total"] == 2000)

    def test_the_newest_episodes_with_a_cost_come_first(self):
        run = self.written("run")
        run.add_epoch(0)
        run.add_episodes(0, [0, 3, 0, 9])
        episodes = self.stream(self.watch(run.folder)).wait(lambda state: True)["report"]["groups"][0]["episodes"]
        self.assertEqual((episodes["all"], episodes["violating"]), (4, 2))
        self.assertEqual([(one["seed"], one["episode"], one["env_steps"], one["sum_cost"]) for one in episodes["newest"]],
                         [("0", 4, 400, 9), ("0", 2, 200, 3)])

    def test_the_runs_of_a_sweep_appear_as_they_begin(self):
        first = self.written("sweep/one")
        with open(os.path.join(self.folder, "sweep", "populations.txt"), "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")
        second = self.written("sweep/two")
        first.add_epoch(0)
        stream = self.stream(self.watch(os.path.join(self.folder, "sweep")))
        state = stream.wait(lambda state: True)
        self.assertEqual([os.path.basename(run["folder"]) for run in state["runs"]], ["one", "two"])
        self.assertEqual(len(state["report"]["runs"]), 1)
        second.add_epoch(0)
        stream.wait(lambda state: len(state["report"]["runs"]) == 2)

    def test_a_complete_run_says_so(self):
        run = self.written("run")
        run.add_epoch(10)
        stream = self.stream(self.watch(run.folder))
        stream.wait(lambda state: state["runs"][0]["done"] == 1 and state["runs"][0]["state"] == "not running")
        with open(os.path.join(run.folder, "report.html"), "w", encoding="utf-8") as file:
            file.write("written at the end of a run")
        stream.wait(lambda state: state["runs"][0]["state"] == "complete")

    def test_a_run_with_tls_says_that_watch_needs_it_too(self):
        run = self.written("run")
        os.makedirs(os.path.join(run.folder, "cluster"), exist_ok=True)
        with open(os.path.join(run.folder, "targets.json"), "w", encoding="utf-8") as file:
            json.dump([{"targets": ["127.0.0.1:1"], "labels": {"role": "replay", "__scheme__": "https"}}], file)
        with open(os.path.join(run.folder, "cluster", "train.lock"), "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as `train` does
            state = self.stream(self.watch(run.folder)).wait(lambda state: True)
        self.assertIn("its processes answer only with --tls FOLDER", state["runs"][0]["problem"])

    def test_a_damaged_run_is_named_and_the_others_go_on(self):
        good, bad = self.written("good"), self.written("bad")
        for run in (good, bad):
            run.add_epoch(0)
        stream = self.stream(self.watch(good.folder, bad.folder))
        stream.wait(lambda state: len(state["report"]["runs"]) == 2)
        with open(bad.progress, "a", encoding="utf-8") as file:
            file.write("0,0,what,1000\n")
        state = stream.wait(lambda state: "problem" in state["runs"][1])
        self.assertIn("bad/progress.csv line 4", state["runs"][1]["problem"])
        self.assertEqual([run["folder"] for run in state["report"]["runs"]], [good.folder])
        good.add_epoch(1)
        stream.wait(lambda state: state["report"]["groups"][0]["members"][0]["epoch"] == 1)

    def test_text_from_files_stays_text(self):
        run = self.written("run", "--set", 'description="</script><b>"')
        run.add_epoch(0)
        with open(os.path.join(run.folder, "build.txt"), "w", encoding="latin-1") as file:
            file.write("<img\xff>")
        stream = self.stream(self.watch(run.folder))
        state = stream.wait(lambda state: state["report"]["runs"])
        self.assertEqual(state["report"]["runs"][0]["description"], "</script><b>")
        self.assertEqual(state["report"]["runs"][0]["build"], "<img\ufffd>", "what is no UTF-8 is replaced")

    def test_nothing_is_written_and_the_end_is_clean(self):
        run = self.written("run")
        run.add_epoch(0)
        run.add_violations(1, 2)
        before = listing(self.folder)
        watching = self.watch(run.folder)
        self.stream(watching).wait(lambda state: state["report"]["groups"])
        self.assertEqual(watching.end(signal.SIGINT), 0)
        self.assertEqual(listing(self.folder), before)

    def test_only_this_machine_under_its_own_names_may_read(self):
        run = self.written("run")
        try:
            socket.getaddrinfo("localhost", 0)
            name = "localhost"
        except OSError:  # a root without /etc/hosts
            name = "127.0.0.1"
        watching = self.watch(run.folder, "--listen", f"{name}:0")
        port = watching.address.rsplit(":", 1)[1]

        def answer(path, **headers):
            connection = http.client.HTTPConnection(watching.address, timeout=PATIENCE)
            self.ends.callback(connection.close)
            connection.putrequest("GET", path, skip_host=True)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            return connection.getresponse()
        for host in ("localhost", "127.0.0.1", "[::1]"):
            self.assertEqual(answer("/", Host=f"{host}:{port}").status, 200)
        for path in ("/", "/events"):
            for host in ("evil.example", "evil.example:" + port, "localhost.evil.example", "0.0.0.0", "192.168.0.1:" + port):
                self.assertEqual(answer(path, Host=host).status, 403, (path, host))
        self.assertEqual(answer("/events", Host="localhost", Sec_Fetch_Site="cross-site").status, 403)
        for listen in ("0.0.0.0:0", "192.0.2.1:80", "[::]:0", "somewhere.example:80"):
            self.assertIn("must be on this machine", self.refused(run.folder, "--listen", listen))
        self.assertIn("must be an address HOST:PORT", self.refused(run.folder, "--listen", "127.0.0.1"))

    def test_the_page_loads_nothing_and_repeats_nothing(self):
        run = self.written("run")
        watching = self.watch(run.folder)
        connection = http.client.HTTPConnection(watching.address, timeout=PATIENCE)
        self.ends.callback(connection.close)
        connection.request("GET", "/?<script>alert('unique')</script>")
        answer = connection.getresponse()
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
        self.assertEqual(answer.status, 200)
        self.assertNotIn("unique", page + str(answer.headers))
        self.assertEqual(re.findall(r"""\b(?:src|href|action|srcset)=["']([^"']*)""", re.sub(r"(?s)<script>.*?</script>", "", page)), ["data:,"])
        directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
        self.assertRegex(directives.pop("script-src"), r"^'sha256-\S+' 'sha256-\S+'$")
        self.assertRegex(directives.pop("style-src"), r"^'sha256-\S+'$")
        self.assertEqual(directives, {"default-src": "'none'", "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'",
                                      "form-action": "'none'", "frame-ancestors": "'none'"})
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(answer.headers["Cross-Origin-Resource-Policy"], "same-origin")

    def test_other_folders_are_refused(self):
        self.assertIn("experiment.textproto", self.refused(self.folder))
        self.assertIn("run_dirs", self.refused())

    def test_many_pages_need_no_further_threads(self):
        run = self.written("run")
        run.add_epoch(0)
        watching = self.watch(run.folder)
        self.stream(watching).wait(lambda state: state["report"]["groups"])
        before = watching.threads()
        for _ in range(60):
            self.stream(watching).wait(lambda state: True)
        self.assertEqual(watching.threads(), before)

    def test_a_long_run_is_shown_with_fewer_points(self):
        run = self.written("run")
        for epoch in range(20000):
            run.add_epoch(epoch)
        state = self.stream(self.watch(run.folder)).wait(lambda state: True)
        steps = [point[0] for point in state["report"]["groups"][0]["series"]["eval_return"]]
        self.assertEqual((steps[0], steps[-1]), (0, 19999000))
        self.assertLess(len(steps), 1500)
        self.assertGreater(len(steps), 100)
        self.assertEqual(len({later - earlier for earlier, later in zip(steps[:-1], steps[1:-1])}), 1, "even distances, but for the end")
        self.assertLess(len(json.dumps(state)), 3_000_000)

    def test_a_patch_is_applied_as_its_standard_says(self):
        document = {"a": [1, 2], "b/c": {"~": 1}, "d": 0}
        changed = copy.deepcopy(document)
        Stream.apply(changed, json.loads("""[{"op": "add", "path": "/a/-", "value": 3}, {"op": "replace", "path": "/b~1c/~0", "value": 2},
                                             {"op": "remove", "path": "/a/0"}, {"op": "remove", "path": "/d"}, {"op": "add", "path": "/e", "value": []}]"""))
        self.assertEqual(changed, {"a": [2, 3], "b/c": {"~": 2}, "e": []})


class MonitorTest(unittest.TestCase):
    """`datacom monitor` with a program that prints its arguments in the place of Prometheus."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-monitor-")
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(os.path.join(self.folder, "bin"))
        os.makedirs(os.path.join(self.folder, "it's"))
        self.program("prometheus", 'printf "%s\\n" "$@"\n')

    def program(self, name, script):
        path = os.path.join(self.folder, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def monitor(self, *words, path=None):
        environment = {**os.environ, "PATH": os.path.join(self.folder, "bin") if path is None else path}
        return subprocess.run([DATACOM, "monitor", *words], env=environment, cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def configuration(self):
        with open(os.path.join(self.folder, "runs/monitor/prometheus.yml"), encoding="utf-8") as file:
            return file.read()

    def test_prometheus_gets_the_targets_of_the_runs_and_the_shipped_rules(self):
        refused = self.monitor("it's")
        self.assertEqual((refused.returncode, os.listdir(self.folder).count("runs")), (2, 0), refused.stderr)
        with open(os.path.join(self.folder, "it's", "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write("name: 'a'\n")
        started = self.monitor("it's", "--listen", "127.0.0.1:9091", "--every", "2")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn("http://127.0.0.1:9091/", started.stdout)
        self.assertIn(f"--config.file={self.folder}/runs/monitor/prometheus.yml", started.stdout.splitlines())
        written = self.configuration()
        self.assertIn(f"          - '{self.folder}/it''s/targets.json'\n", written)
        self.assertIn("  scrape_interval: 2s\n  evaluation_interval: 6s\n", written)
        for name in re.findall(r"- '(\S+(?:rules|alerts)\.yml)'", written):
            self.assertTrue(os.path.isfile(name), name)
        self.assertEqual(written.count(".yml'"), 2)
        self.assertNotIn("tls", written)
        if shutil.which("promtool"):
            subprocess.run(["promtool", "check", "config", "runs/monitor/prometheus.yml"], cwd=self.folder, check=True, capture_output=True)

    def test_port_0_becomes_a_free_port_that_is_printed(self):
        with open(os.path.join(self.folder, "it's", "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write("name: 'a'\n")
        started = self.monitor("it's", "--listen", "127.0.0.1:0")
        self.assertEqual(started.returncode, 0, started.stderr)
        port = re.search(r"^--web\.listen-address=127\.0\.0\.1:([1-9]\d*)$", started.stdout, re.M)
        self.assertIn(f"Prometheus: http://127.0.0.1:{port[1]}/ until Ctrl-C", started.stdout)

    def test_grafana_is_started_over_prometheus_where_it_is_installed(self):
        with open(os.path.join(self.folder, "it's", "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write("name: 'a'\n")
        self.assertIn("until Ctrl-C; dashboards for a Grafana that reads it: /", self.monitor("it's").stdout)
        pipe = os.path.join(self.folder, "pipe")
        os.mkfifo(pipe)
        self.program("grafana", f'{{ echo "words $*"; export -p; }} >{pipe}\n')
        self.program("prometheus", f'while read -r line; do echo "$line"; done <{pipe}\n')  # until that Grafana has said all
        started = self.monitor("it's", "--listen", "127.0.0.1:9091", "--grafana", "127.0.0.1:3001")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertIn("dashboards: http://127.0.0.1:3001/d/datacom-safety\n", started.stdout)
        self.assertIn("\nwords server --homepath /usr/share/grafana\n", started.stdout)
        said = dict(re.findall(r"^export (\w+)='(.*)'$", started.stdout, re.M))
        self.assertEqual((said["GF_SERVER_HTTP_ADDR"], said["GF_SERVER_HTTP_PORT"]), ("127.0.0.1", "3001"))
        self.assertEqual(said["DATACOM_PROMETHEUS"], "http://127.0.0.1:9091")
        self.assertEqual(said["GF_PATHS_DATA"], f"{self.folder}/runs/monitor/grafana")
        self.assertIn("safety.json", os.listdir(said["DATACOM_DASHBOARDS"]))
        with open(os.path.join(said["GF_PATHS_PROVISIONING"], "dashboards/datacom.yaml"), encoding="utf-8") as file:
            self.assertIn("      path: $DATACOM_DASHBOARDS\n", file.read())
        self.program("prometheus", "exit 0\n")
        self.assertIn("dashboards for a Grafana that reads it", self.monitor("it's", "--grafana", "").stdout)

    def test_runs_with_tls_need_the_certificate_of_prometheus_and_its_absence_is_named(self):
        with open(os.path.join(self.folder, "it's", "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write("name: 'a'\n")
        os.makedirs(os.path.join(self.folder, "tls"))
        self.assertIn("--tls tls has no ca.crt", self.monitor("it's", "--tls", "tls").stderr)
        for name in ("ca.crt", "prometheus.crt", "prometheus.key"):
            with open(os.path.join(self.folder, "tls", name), "w", encoding="utf-8"):
                pass
        self.assertEqual(self.monitor("it's", "--tls", "tls").returncode, 0)
        self.assertIn(f"      key_file: '{self.folder}/tls/prometheus.key'\n      server_name: datacom\n", self.configuration())
        missing = self.monitor("it's", path="/nonexistent")
        self.assertEqual((missing.returncode, missing.stdout), (2, ""))
        self.assertIn(f"prometheus is not installed; install it (Debian: prometheus), or point one of your own to {self.folder}/", missing.stderr)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
