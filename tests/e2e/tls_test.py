"""Tests a run whose roles use mutual TLS, and its refusals."""
import json
import os
import shutil
import socket
import ssl
import subprocess
import unittest
import urllib.request

from running import BIN, PATIENCE, SOURCE, RunTest, Training, run  # also makes tests/testing importable
from watched_runs import Stream, Watching


class TlsTest(RunTest):
    def test_a_run_over_mutual_tls_completes_and_refuses_strangers(self):
        tls = os.path.join(self.folder, "tls")
        other = os.path.join(self.folder, "other")  # of another authority
        for folder in (tls, other):
            subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), folder], check=True)
        training = Training(self, "a", "--seeds", "0", "--steps", "20000", "--tls", tls).start()
        training.wait_for_episodes(2)
        self.assertIn("samples/insert", run("status", training.folder, "--tls", tls).stdout)
        for options, said in (((), "its processes answer only with --tls FOLDER"), (("--tls", other), "do not answer with the files of this --tls")):
            refused = run("status", training.folder, *options)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(said, refused.stderr)
        for options, running in ((["--tls", tls], True), ([], False)):
            with Watching(os.path.join(BIN, "datacom"), training.folder, *options) as watching, Stream(watching.address) as stream:
                state, = stream.wait(lambda state: state["runs"])["runs"]
                self.assertEqual((state["state"] != "not running", len(state["sessions"]) > 0), (running, running))

        addresses = {}
        for role in ("replay", "learner"):
            with open(os.path.join(training.folder, "cluster", role + ".address"), encoding="utf-8") as file:
                addresses[role] = file.read().strip()
        stranger = os.path.join(self.folder, "stranger")  # a certificate of this authority with the token of another run
        shutil.copytree(tls, stranger)
        with open(os.path.join(stranger, "token"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef0123456789abcdef\n")
        actor = subprocess.run(
            [os.path.join(BIN, "datacom-actor"), "run", "--replay", addresses["replay"], "--learner", addresses["learner"],
             "--run-id", "a", "--tls", stranger], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(actor.returncode, 2, actor.stderr)
        self.assertIn("token is not this run's", actor.stderr)

        with self.subTest("metrics"):
            with open(os.path.join(training.folder, "targets.json"), encoding="utf-8") as file:
                targets = json.load(file)
            self.assertEqual([target["labels"]["role"] for target in targets], ["replay", "learner", "actor", "evaluator"])
            for target in targets:
                self.assertEqual(target["labels"]["__scheme__"], "https")
                address = target["targets"][0]
                self.assertIn("datacom_build_info", self.scrape(address, tls, "prometheus"))
                with self.assertRaises(OSError):
                    self.scrape(address, tls, None)  # without a certificate
                with self.assertRaises(OSError):
                    urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE)

        training.finish()
        training.check_complete(seeds=[0], steps=20000, epochs=20)

    def scrape(self, address, tls, certificate):
        """The text of /metrics over TLS. Checks the server's certificate by the name that Prometheus' configurations use."""
        context = ssl.create_default_context(cafile=os.path.join(tls, "ca.crt"))
        if certificate:
            context.load_cert_chain(os.path.join(tls, certificate + ".crt"), os.path.join(tls, certificate + ".key"))
        host, port = address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as plain, context.wrap_socket(plain, server_hostname="datacom") as secure:
            secure.sendall(b"GET /metrics HTTP/1.1\r\nHost: datacom\r\n\r\n")
            return secure.makefile("rb").read().decode()

    def test_a_folder_without_a_token_is_refused_naming_the_file(self):
        tls = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), tls], check=True)
        os.remove(os.path.join(tls, "token"))
        refused = run("train", "cartpole/datacom", "--run-dir", os.path.join(self.folder, "a"), "--tls", tls)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn(os.path.join(tls, "token"), refused.stderr)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
