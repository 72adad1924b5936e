"""What the tests of rules, alerts and dashboards share: the project's files, and which metrics there are."""
import os
import re

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROMETHEUS = os.path.join(SOURCE, "deploy", "prometheus")


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def table():
    """Every metric of common/metrics/table.cc with its type."""
    text = read("common", "metrics", "table.cc")
    found = {name: kind.lower() for kind, name in re.findall(r'\b(Counter|Gauge|Histogram)\("(datacom_\w+)"', text)}
    found.update(re.findall(r'\{"(datacom_\w+)",\s*"(\w+)"', text))
    return found


def series():
    """Every series name a scrape can show."""
    names = set()
    for name, kind in table().items():
        names |= {name + suffix for suffix in ("_bucket", "_count", "_sum")} if kind == "histogram" else {name}
    return names


def recorded():
    """Names of the recording rules."""
    return set(re.findall(r"^\s*- record: (\S+)$", read("deploy", "prometheus", "rules.yml"), re.M))


def alerts():
    """(name, its block of text) of every alert."""
    parts = re.split(r"^\s*- alert: (\w+)$", read("deploy", "prometheus", "alerts.yml"), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def unknown_names(expression):
    """What an expression names that no process exports and no rule records."""
    names = set(re.findall(r"\b(?:member|run):\w+(?::\w+)?|\bdatacom_\w+", re.sub(r'"[^"]*"', "", expression)))
    names = {name for name in names if not any(name != other and name in other and other.startswith(("member:", "run:")) for other in names)}
    return names - series() - recorded()
