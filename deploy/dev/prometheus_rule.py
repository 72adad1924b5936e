#!/usr/bin/env python3
"""Prints deploy/kubernetes/rules/rules.yaml: the rule groups of deploy/prometheus as a PrometheusRule of the operator.

    deploy/dev/prometheus_rule.py >deploy/kubernetes/rules/rules.yaml
"""
import pathlib

PROMETHEUS = pathlib.Path(__file__).resolve().parent.parent / "prometheus"
HEAD = """\
# Written by deploy/dev/prometheus_rule.py from deploy/prometheus. Most installations select by the label `release`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: datacom
  labels: {release: prometheus}
spec:
  groups:
"""

if __name__ == "__main__":
    print(HEAD, end="")
    for name in ("rules.yml", "alerts.yml"):
        _, groups = (PROMETHEUS / name).read_text(encoding="utf-8").split("\ngroups:\n")
        for line in groups.splitlines():
            print(("  " + line).rstrip())
# SPDX-License-Identifier: Apache-2.0
