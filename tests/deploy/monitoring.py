"""Helpers of the tests of rules, alerts and dashboards: the project's files and metrics."""
import glob
import json
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "deploy", "dev"), os.path.join(SOURCE, "tests", "testing")]
from dashboards import statistics  # noqa: E402  the path comes first
from patience import PATIENCE  # noqa: E402, F401  for the tests

PROMETHEUS = os.path.join(SOURCE, "deploy", "prometheus")


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


# Metrics of NVIDIA's dcgm-exporter: no process of a run exports them, and they do not name a run.
OF_GPUS = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"}


def about_gpus(expression):
    """Whether a query has no data without a GPU."""
    return bool(OF_GPUS & set(re.findall(r"\bDCGM_\w+", expression))) or 'device!="cpu"' in expression


def table():
    """Every metric with its type: those of common/metrics/metrics.textproto and the gauges of statistics."""
    text = read("common", "metrics", "metrics.textproto")
    found = dict(re.findall(r'^metric \{ name: "(datacom_\w+)" type: "(\w+)"', text, re.M))
    found.update({"datacom_member_" + name: "gauge" for name in statistics()})
    return found


def series():
    """Every series name that a scrape can return."""
    names = set()
    for name, kind in table().items():
        names |= {name + suffix for suffix in ("_bucket", "_count", "_sum")} if kind == "histogram" else {name}
    return names


def recorded():
    """Names of the recording rules."""
    return set(re.findall(r"^\s*- record: (\S+)$", read("deploy", "prometheus", "rules.yml"), re.M))


def alerts():
    """(name, block of text) of every alert."""
    parts = re.split(r"^\s*- alert: (\w+)$", read("deploy", "prometheus", "alerts.yml"), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def unknown_names(expression):
    """Names in an expression that no process exports and no rule records."""
    names = set(re.findall(r"\b(?:member|run):\w+(?::\w+)?|\bdatacom_\w+", re.sub(r'"[^"]*"', "", expression)))
    names = {name for name in names if not any(name != other and name in other and other.startswith(("member:", "run:")) for other in names)}
    names |= set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", expression))
    return names - series() - recorded() - OF_GPUS


def dashboards():
    """uid -> dashboard."""
    found = {}
    for path in glob.glob(os.path.join(SOURCE, "deploy", "grafana", "dashboards", "*.json")):
        with open(path, encoding="utf-8") as file:
            page = json.load(file)
        found[page["uid"]] = page
    return found


def expressions(substitute=True):
    """((dashboard, panel), query) of every panel, as Grafana would send it with all runs, tasks and members selected."""
    for uid, page in sorted(dashboards().items()):
        for panel in page["panels"]:
            for target in panel["targets"]:
                text = target["expr"]
                if substitute:
                    text = re.sub(r"\$(run|task|member)\b", ".*", text.replace("$__rate_interval", "1m"))
                yield (uid, panel["title"]), text


def selectors(expression):
    """Every selector in an expression, without its range."""
    return set(re.findall(r"[a-zA-Z_:][\w:]*\{[^}]*\}|\{[^}]*\}|\b(?:datacom_\w+|(?:run|member):[\w:]+)(?!\w*[{:])", expression))


def alert_expression(text):
    """The expression of an alert's block."""
    inner = re.search(r"^\s*expr: (?:\|\n((?:\s{10,}.*\n)+)|(.*)\n)", text, re.M)
    return inner.group(1) or inner.group(2)
# SPDX-License-Identifier: Apache-2.0
