"""Checks that dashboards equal their generator's output, do not overlap, and query existing metrics in valid syntax."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from monitoring import OF_GPUS, PATIENCE, SOURCE, about_gpus, dashboards, expressions, read, unknown_names

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
            if not any(name in text for name in OF_GPUS):
                self.assertIn('run=~"$run"', text, (uid, title))

    def test_every_dashboard_uses_the_provisioned_source(self):
        source = read("deploy", "grafana", "provisioning", "datasources", "datacom.yaml")
        for uid, page in dashboards().items():
            default = page["templating"]["list"][0]["current"]["value"]
            self.assertIn(f"uid: {default}\n", source)
            self.assertEqual(set(re.findall(r'"uid": "([^"]*)"', json.dumps(page["panels"]))), {"${datasource}"}, uid)

    def promtool(self, command, content):
        """Runs promtool on a file with this content, and expects success."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "input.yml")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
            result = subprocess.run(["promtool", command, "rules", path], capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (apt-get install prometheus)")
    def test_every_query_has_valid_syntax(self):
        rules = [{"record": f"panel:{i}", "expr": text} for i, (_, text) in enumerate(expressions())]
        self.promtool("check", {"groups": [{"name": "panels", "rules": rules}]})

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (apt-get install prometheus)")
    def test_the_queries_about_gpus_answer_for_gpus_only(self):
        # The machines of this project have no GPU, so the series are made up: run g computes on a GPU, run c does not.
        series = {'datacom_learner_device_info{run="g",task="t",device="cuda"}': "1x60", 'datacom_learner_device_info{run="c",task="t",device="cpu"}': "1x60"}
        for run in "gc":
            for le, step in (("0.001", 0), ("0.002", 60), ("+Inf", 60)):
                series[f'datacom_learner_update_seconds_bucket{{run="{run}",task="t",le="{le}"}}'] = f"0+{step}x60"
        for gpu in "01":
            labels = f'{{gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="M",Hostname="node"}}'
            series["DCGM_FI_DEV_GPU_UTIL" + labels] = f"4{gpu}x60"
            series["DCGM_FI_DEV_FB_USED" + labels] = f"100{gpu}x60"
        wanted = {"histogram_quantile(0.5,": [('{run="g"}', 0.0015)], "histogram_quantile(0.99,": [('{run="g"}', 0.00199)],
                  "DCGM_FI_DEV_GPU_UTIL": [('{Hostname="node",gpu="0"}', 40), ('{Hostname="node",gpu="1"}', 41)],
                  "DCGM_FI_DEV_FB_USED": [('{Hostname="node",gpu="0"}', 1000), ('{Hostname="node",gpu="1"}', 1001)]}
        queries = [text for _, text in expressions() if about_gpus(text)]
        self.assertEqual(len(queries), len(wanted))
        cases = [{"expr": text.replace("[1m]", "[5m]"), "eval_time": "30m",
                  "exp_samples": [{"labels": labels, "value": value} for labels, value in next(wanted[key] for key in wanted if key in text)]}
                 for text in queries]
        self.promtool("test", {"evaluation_interval": "1m", "tests": [{
            "interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series.items()], "promql_expr_test": cases}]})


if __name__ == "__main__":
    unittest.main(verbosity=1)
# SPDX-License-Identifier: Apache-2.0
