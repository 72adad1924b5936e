"""Lets Prometheus scrape a real run and checks that every panel's query and every alert's selectors return data."""
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

from running import BIN, PATIENCE, SOURCE, RunTest, Training

sys.path.insert(0, os.path.join(SOURCE, "tests", "deploy"))
from monitoring import about_gpus, alert_expression, alerts, expressions, recorded, selectors  # noqa: E402


@unittest.skipUnless(shutil.which("prometheus"), "prometheus is not installed (apt-get install prometheus)")
class MonitoringTest(RunTest):
    def prometheus(self, training, tls=""):
        """Starts Prometheus over this run."""
        self.log = os.path.join(self.folder, "prometheus.log")
        with open(self.log, "w", encoding="utf-8") as log:
            process = subprocess.Popen([os.path.join(BIN, "datacom"), "monitor", training.folder, "--every", "1", "--listen", "127.0.0.1:0", "--data",
                                        os.path.join(self.folder, "monitor"), *(["--tls", tls] if tls else [])], stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def address():
            with open(self.log, encoding="utf-8") as log:
                return re.search(r'msg="Listening on" address=(\S+)', log.read())
        training.wait(address, "address of Prometheus")
        return "http://" + address().group(1)

    def task_with_two_costs(self):
        folder = os.path.join(self.folder, "robot")
        shutil.copytree(os.path.join(SOURCE, "deploy", "examples", "cartpole"), folder)
        task = os.path.join(folder, "task.textproto")
        with open(task, "a", encoding="utf-8") as file:
            file.write('cost { name: "right" value: "slider + 1" }\n')
        return task

    def ask(self, query):
        """The values of an instant query, without NaN."""
        url = self.url + "/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                result = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:  # Prometheus is still starting
                return []
            self.fail(f"{query}\n{error.read().decode()}")
        return [value for value in (float(series["value"][1]) for series in result) if not math.isnan(value)]

    def test_every_panel_and_every_alert_finds_its_data_in_a_real_run(self):
        # Delta's mode peak has a panel of its own, and so have the costs of a task with several.
        training = Training(self, "a", "--algorithm", "datacom", "--seeds", "0-1", "--steps", "1000000",
                            overrides=["hyper.delta_mode=peak", "hyper.delta_warmup=2000"])
        training.experiment = self.task_with_two_costs()
        training.start()
        training.wait(lambda: os.path.exists(os.path.join(training.folder, "targets.json")), "targets.json")
        self.url = self.prometheus(training)
        wanted = {f"{uid}, panel {title}: {text}": text for (uid, title), text in expressions() if not about_gpus(text)}
        wanted.update({f"alert {name}: {text}": text for name, block in alerts() for text in selectors(alert_expression(block))})
        wanted.update({f"rule {name}": name for name in recorded()})
        self.assertGreater(len(wanted), 80)
        silent = dict(wanted)  # shown in the message at a timeout

        def all_answered():
            for what, query in list(silent.items()):
                if self.ask(query):
                    del silent[what]
            return not silent
        training.wait(all_answered, silent)
        with self.subTest("targets carry their role, and the series the run"):
            self.assertEqual(self.ask('count(up{role=~"replay|learner|actor|evaluator"} == 1)'), [4])
            with open(os.path.join(training.folder, "run_id"), encoding="utf-8") as file:
                run = file.read().strip()
            self.assertEqual(self.ask(f'count(count by (member) (datacom_member_delta{{run="{run}"}}))'), [2])
        with self.subTest("a learner on the CPU shows nothing about GPUs"):
            self.assertEqual([self.ask(text) for _, text in expressions() if about_gpus(text)], [[]] * 4)
            self.assertEqual(self.ask('datacom_learner_device_info{device="cpu"}'), [1])
        with self.subTest("each cost has its name"):
            self.assertEqual(self.ask('count(count by (cost) (datacom_member_named_cost_total{cost=~"pole|right"}))'), [2])
        with self.subTest("a healthy run sends no alert"):
            self.assertEqual(self.ask('ALERTS{alertstate="firing"}'), [])
        training.process.send_signal(signal.SIGINT)
        training.finish(75)

    def test_a_run_over_tls_is_scraped_before_and_after_its_certificates_are_renewed(self):
        make_tls, tls = os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), os.path.join(self.folder, "tls")
        subprocess.run([make_tls, tls], check=True)
        training = Training(self, "a", "--seeds", "0", "--steps", "1000000", "--tls", tls).start()
        training.wait(lambda: os.path.exists(os.path.join(training.folder, "targets.json")), "targets.json")
        self.url = self.prometheus(training, tls)
        training.wait(lambda: self.ask("count(up == 1)") == [4], "every role over TLS")
        for name in ("ca.key", "ca.crt"):  # without them make_tls.sh makes a new authority, which old certificates do not fit
            os.unlink(os.path.join(tls, name))
        subprocess.run([make_tls, tls], check=True)
        renewed, = self.ask("max(timestamp(up))")
        training.wait(lambda: self.ask(f"count(timestamp(up) > {renewed + 2} and up == 1)") == [4], "every role with new certificates")
        training.process.send_signal(signal.SIGINT)
        training.finish(75)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
