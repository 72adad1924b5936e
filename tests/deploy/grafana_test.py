"""Checks that dashboards equal their generator's output, do not overlap, and query existing metrics in valid syntax."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from monitoring import PATIENCE, SOURCE, dashboards, expressions, read, unknown_names

sys.path.insert(0, os.path.join(SOURCE, "deploy", "dev"))
from dashboards import render  # noqa: E402  the path comes first

FOLDER = os.path.join("deploy", "grafana", "dashboards")


class Dashboards(unittest.TestCase):
    def test_the_committed_files_equal_the_generators_output(self):
        rendered = render()
        self.assertEqual(sorted(os.listdir(os.path.join(SOURCE, FOLDER))), sorted(rendered))
        for name, content in rendered.items():
            self.assertEqual(read(FOLDER, name), content, f"{name}: run deploy/dev/dashboards.py")

    def test_the_four_dashboards_exist_with_their_variables(self):
        self.assertEqual(sorted(dashboards()), ["datacom-learning", "datacom-safety", "datacom-sweep", "datacom-throughput"])
        for uid, page in dashboards().items():
            self.assertEqual([variable["name"] for variable in page["templating"]["list"]], ["datasource", "run", "task", "member"], uid)

    def test_panels_do_not_overlap_and_have_unique_ids_and_a_description(self):
        for uid, page in dashboards().items():
            taken = set()
            for panel in page["panels"]:
                at = panel["gridPos"]
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                self.assertFalse(cells & taken, (uid, panel["title"]))
                self.assertLessEqual(at["x"] + at["w"], 24)
                self.assertTrue(panel["description"].endswith("."), panel["title"])
                self.assertTrue(panel["targets"], panel["title"])
                taken |= cells
            self.assertEqual(len({panel["id"] for panel in page["panels"]}), len(page["panels"]))

    def test_every_query_uses_existing_metrics_and_the_variables(self):
        for (uid, title), text in expressions(substitute=False):
            self.assertEqual(unknown_names(text), set(), (uid, title))
            self.assertIn('run=~"$run"', text, (uid, title))

    def test_every_dashboard_uses_the_provisioned_source(self):
        source = read("deploy", "grafana", "provisioning", "datasources", "datacom.yaml")
        for uid, page in dashboards().items():
            default = page["templating"]["list"][0]["current"]["value"]
            self.assertIn(f"uid: {default}\n", source)
            self.assertEqual(set(re.findall(r'"uid": "([^"]*)"', json.dumps(page["panels"]))), {"${datasource}"}, uid)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (apt-get install prometheus)")
    def test_every_query_has_valid_syntax(self):
        rules = [{"record": f"panel:{i}", "expr": text} for i, (_, text) in enumerate(expressions())]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rules.yml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            result = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
# SPDX-License-Identifier: Apache-2.0
