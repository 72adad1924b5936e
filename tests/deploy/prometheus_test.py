"""Checks rules and alerts against the table of metrics and the runbook; with promtool also syntax, lint and unit tests."""
import os
import re
import shutil
import subprocess
import unittest

from monitoring import PATIENCE, PROMETHEUS, SOURCE, alerts, read, recorded, table, unknown_names

TESTS = os.path.join(SOURCE, "tests", "deploy", "prometheus")
GAUGES_OF_STATISTICS = {"datacom_member_" + name for name in (
    "delta", "alpha", "policy_loss", "critic_loss", "constraint_loss", "entropy", "q_mean", "q_min", "q_gap", "actor_gradient_norm",
    "critic_gradient_norm", "constraint_gradient_norm", "delta_cost", "infeasible_share")}


def anchors(markdown):
    """The link anchors of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", markdown, re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Files(unittest.TestCase):
    def test_the_table_of_metrics_is_read_completely(self):
        named = set(re.findall(r'"(datacom_\w+)"', read("common", "metrics", "metrics.textproto")))
        self.assertEqual(set(table()), named | GAUGES_OF_STATISTICS)

    def test_rules_and_alerts_use_existing_metrics(self):
        for name in ("rules.yml", "alerts.yml"):
            text = re.sub(r"^\s*(- (record|alert|name):|summary:|runbook_url:).*$|#.*$", "", read("deploy", "prometheus", name), flags=re.M)
            self.assertEqual(unknown_names(text), set(), name)

    def test_every_alert_has_a_severity_a_summary_and_a_runbook_section(self):
        runbook = anchors(read("docs/monitoring.md"))
        self.assertGreater(len(alerts()), 6)
        for name, text in alerts():
            self.assertRegex(text, r"severity: (page|ticket)\n", name)
            self.assertIn("summary:", text, name)
            link = re.search(r"runbook_url: docs/monitoring\.md#(\S+)", text)
            self.assertTrue(link, name)
            self.assertEqual(link.group(1), name.lower())
            self.assertIn(link.group(1), runbook)

    def test_every_alert_and_every_recording_rule_has_a_unit_test(self):
        cases = re.split(r"^      - alertname: ", read("tests", "deploy", "prometheus", "alerts_test.yml"), flags=re.M)[1:]
        for name, _ in alerts():
            own = [case for case in cases if case.split("\n")[0] == name]
            self.assertTrue(any("exp_labels" in case for case in own), f"{name} never fires")
            self.assertTrue(any("exp_alerts: []" in case for case in own), f"{name} is never quiet")
        tested = read("tests", "deploy", "prometheus", "rules_test.yml") + read("deploy", "prometheus", "alerts.yml")
        self.assertTrue(recorded())
        for name in recorded():
            self.assertIn(name, tested)

    def test_the_configurations_for_tls_differ_from_the_others_in_nothing_else(self):
        tls = r"(?m)^    (scheme|tls_config):.*\n(      .*\n)*|^#.*\n"
        plain, secure = (read("deploy", "compose", name) for name in ("prometheus.yml", "prometheus.tls.yml"))
        self.assertEqual(re.sub(tls, "", secure), re.sub(tls, "", plain))
        self.assertIn("      server_name: datacom\n", secure)


@unittest.skipUnless(shutil.which("promtool"), "promtool is not installed (apt-get install prometheus)")
class Promtool(unittest.TestCase):
    def promtool(self, *arguments, folder=PROMETHEUS):
        result = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_the_configurations_are_valid(self):
        self.promtool("check", "config", "../compose/prometheus.yml")
        # Without the certificates' files, which a run brings.
        self.promtool("check", "config", "--syntax-only", "../compose/prometheus.tls.yml")

    def test_rules_and_alerts_are_free_of_lint(self):
        self.promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yml", "alerts.yml")

    def test_the_unit_tests_of_rules_and_alerts_pass(self):
        self.promtool("test", "rules", "rules_test.yml", "alerts_test.yml", folder=TESTS)


if __name__ == "__main__":
    unittest.main(verbosity=1)
# SPDX-License-Identifier: Apache-2.0
