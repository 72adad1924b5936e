#!/usr/bin/env python3
"""Reads every dashboard with Grafana's own types, writes it again and compares: a field or value that Grafana does not know is found.

usage: grafana_schema_test.py [unittest arguments], run in the build folder. The types are generated from Grafana's schemas and come from
PyPI, for the oldest supported version and for the newest that PyPI has.
"""
import copy
import enum
import importlib
import json
import os
import sys
import types
import typing
import unittest

import schemas
from monitoring import dashboards  # also makes tests/testing importable
from skipped import SKIPPED

PACKAGE = "grafana_foundation_sdk"
WHY_NOT = "".join(schemas.install("grafana-" + version, [package], "--no-deps") for version, package in schemas.GRAFANA.items())
if WHY_NOT:
    print("skipped:", WHY_NOT)
    sys.exit(SKIPPED)

# Grafana has these fields, and its generated types do not.
UNTYPED = {".id": "null in a file that Grafana shall provision", ".templating.list[].definition": "the query again, for Grafana's editor"}


class Grafana:
    """The types of one version. Only one version is imported at a time, because all have the same name."""

    def __init__(self, version):
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]
        sys.path.insert(0, os.path.join(os.getcwd(), "python", "grafana-" + version))
        importlib.invalidate_caches()
        importlib.import_module(PACKAGE + ".cog.plugins").register_default_plugins()
        self.encoder = importlib.import_module(PACKAGE + ".cog.encoder").JSONEncoder
        self.dashboard = importlib.import_module(PACKAGE + ".models.dashboard").Dashboard

    def objections(self, page):
        """The fields that Grafana's types do not have, and the values that they do not allow."""
        return sorted(set(self.mistyped(copy.deepcopy(page), self.dashboard)) - set(UNTYPED))

    def mistyped(self, value, hint, path=""):
        """The fields of `value` that the type `hint` does not have, and those whose value is not of the field's type."""
        if hint in (object, typing.Any):
            if not hasattr(value, "from_json"):
                return
            hint = type(value)
        parts, origin = typing.get_args(hint), typing.get_origin(hint)
        if origin in (typing.Union, types.UnionType):
            fitting = [part for part in parts if part is type(value)] or parts
            yield from min((list(self.mistyped(value, part, path)) for part in fitting), key=len)
        elif origin is typing.Literal or isinstance(hint, type) and issubclass(hint, enum.Enum):
            if value not in (parts or [*hint, *(choice.value for choice in hint)]):
                yield f"{path} = {value!r}"
        elif origin is list and isinstance(value, list):
            for one in value:
                yield from self.mistyped(one, parts[0], path + "[]")
        elif origin is dict and isinstance(value, dict):
            for key, one in value.items():
                yield from self.mistyped(one, parts[1], f"{path}.{key}")
        elif hasattr(hint, "from_json") and isinstance(value, dict):  # the types leave some objects as they were read
            typed = hint.from_json(value)
            yield from lost(value, json.loads(json.dumps(typed, cls=self.encoder)), path)
            yield from self.mistyped(typed, hint, path)
        elif not isinstance(value, origin or hint) and not (hint is float and isinstance(value, int)):
            yield f"{path} = {value!r}"
        elif hasattr(value, "from_json"):
            for name, inner in typing.get_type_hints(type(value)).items():
                yield from self.mistyped(getattr(value, name), inner, f"{path}.{name}")


def lost(before, after, path=""):
    """What is missing or different after reading and writing. Defaults that the types add do not count."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            yield from lost(value, after[key], f"{path}.{key}") if key in after else [f"{path}.{key}"]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after):
            yield from lost(one, other, path + "[]")
    elif before != after:
        yield path


def first_panel(page, kind):
    return next(panel for panel in page["panels"] if panel["type"] == kind)


class Schema(unittest.TestCase):
    def test_every_field_and_value_is_one_of_grafana(self):
        for version in schemas.GRAFANA:
            grafana = Grafana(version)
            for uid, page in dashboards().items():
                with self.subTest(uid, version=version):
                    self.assertEqual(grafana.objections(page), [])

    def test_every_type_of_panel_and_query_is_known(self):
        for version in schemas.GRAFANA:
            grafana = Grafana(version)
            for uid, page in dashboards().items():
                for panel in grafana.dashboard.from_json(page).panels:
                    with self.subTest(uid, version=version, panel=panel.title):
                        self.assertEqual(type(panel.options).__name__, "Options")
                        self.assertEqual({type(target).__module__ for target in panel.targets}, {PACKAGE + ".models.prometheus"})

    def test_a_misspelt_field_is_found(self):
        grafana = Grafana(list(schemas.GRAFANA)[-1])
        page = dashboards()["datacom-sweep"]

        def misspell(change):
            broken = copy.deepcopy(page)
            change(broken)
            return grafana.objections(broken)
        for change, finding in (
                (lambda broken: broken.update(refesh="10s"), ".refesh"),
                (lambda broken: broken["panels"][0].update(descripton="x"), ".panels[].descripton"),
                (lambda broken: first_panel(broken, "bargauge")["options"].update(orentation="horizontal"), ".panels[].options.orentation"),
                (lambda broken: first_panel(broken, "timeseries")["fieldConfig"]["defaults"]["custom"].update(lineWith=1),
                 ".panels[].fieldConfig.defaults.custom.lineWith"),
                (lambda broken: first_panel(broken, "table")["fieldConfig"]["defaults"].update(units="s"),
                 ".panels[].fieldConfig.defaults.units"),
                (lambda broken: broken["panels"][0]["targets"][0].update(expression="up"), ".panels[].targets[].expression"),
                (lambda broken: broken["templating"]["list"][1].update(mutli=True), ".templating.list[].mutli")):
            self.assertEqual(misspell(change), [finding])

    def test_a_misspelt_field_of_a_transformation_is_found(self):
        grafana = Grafana(list(schemas.GRAFANA)[-1])
        page = dashboards()["datacom-sweep"]
        first_panel(page, "table")["transformations"][0]["disbled"] = True
        self.assertEqual(grafana.objections(page), [".panels[].transformations[].disbled"])

    def test_a_wrong_value_is_found(self):
        grafana = Grafana(list(schemas.GRAFANA)[-1])
        for name, kind, change, finding in (
                ("sweep", "bargauge", {"options": {"orientation": "sideways"}}, ".panels[].options.orientation = 'sideways'"),
                ("sweep", "timeseries", {"title": 5}, ".panels[].title = 5"),
                ("safety", "table", {"gridPos": {"h": "high", "w": 24, "x": 0, "y": 0}}, ".panels[].grid_pos.h = 'high'")):
            page = copy.deepcopy(dashboards()["datacom-" + name])
            first_panel(page, kind).update(change)
            self.assertEqual(grafana.objections(page), [finding])


if __name__ == "__main__":
    unittest.main(verbosity=1)
# SPDX-License-Identifier: Apache-2.0
