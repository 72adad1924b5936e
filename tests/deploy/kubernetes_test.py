#!/usr/bin/env python3
"""Kubernetes manifests as kustomize renders them, and those that `datacom sweep` writes, against golden files.

usage: kubernetes_test.py DATACOM [unittest arguments]
       kubernetes_test.py DATACOM --write       writes the golden files anew; look at the difference
"""
import os
import subprocess
import sys
import tempfile
import unittest

from manifests import FOLDERS, GOLDEN, KUBERNETES, SKIPPED, SOURCE, read, render, why_no_kustomize, write_sweep

DATACOM = os.path.abspath(sys.argv.pop(1))
NO_KUSTOMIZE = why_no_kustomize()


def sweep_files(folder):
    """Name of a golden file -> what the sweep wrote."""
    files = {"sweep-kustomization.yaml": read(folder, "kustomization.yaml")}
    for population in read(folder, "populations.txt").split():
        files[f"sweep-{population}.yaml"] = read(folder, population, "jobset.yaml")
    return files


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-manifests-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_sweep_writes_the_golden_jobsets_and_one_kustomization_over_them(self):
        said = write_sweep(DATACOM, self.folder)
        self.assertIn(f"kubectl apply -k {self.folder}", said)
        written = sweep_files(self.folder)
        self.assertEqual(len(written), 3)
        for name, text in written.items():
            self.assertEqual(text, read(GOLDEN, name), name)
        self.assertNotIn("@", "".join(line.split("#")[0] for text in written.values() for line in text.splitlines()))
        again = write_sweep(DATACOM, self.folder)
        self.assertEqual((said, written), (again, sweep_files(self.folder)))

    def test_actors_and_images_are_refused_for_a_sweep_on_this_machine(self):
        for more in (["--actors", "2"], ["--images", "x"]):
            refused = subprocess.run([DATACOM, "sweep", os.path.join(GOLDEN, "sweep.textproto"), "--dir", self.folder, *more],
                                     capture_output=True, text=True, timeout=60, check=False, cwd=SOURCE)
            self.assertEqual(refused.returncode, 2)
            self.assertIn("--backend kubernetes", refused.stderr)

    def test_the_base_runs_a_shipped_experiment(self):
        self.assertEqual(read(KUBERNETES, "base", "experiment.textproto"),
                         read(SOURCE, "deploy", "experiments", "cartpole", "datacom.textproto"))

    def test_the_operators_rules_are_those_of_prometheus(self):
        script = os.path.join(SOURCE, "deploy", "dev", "prometheus_rule.py")
        written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(read(KUBERNETES, "rules", "rules.yaml"), written)


@unittest.skipIf(NO_KUSTOMIZE, NO_KUSTOMIZE)
class Rendered(unittest.TestCase):
    def test_every_overlay_renders_to_its_golden_file(self):
        for name, folder in FOLDERS.items():
            with self.subTest(name):
                self.assertEqual(render(os.path.join(KUBERNETES, folder)), read(GOLDEN, name + ".yaml"))

    def test_a_sweep_is_one_apply_with_the_experiments_whole(self):
        with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as folder:
            write_sweep(DATACOM, folder)
            text = render(folder)
            self.assertEqual(text.count("kind: JobSet"), 2)
            self.assertEqual(text.count("kind: ConfigMap"), 2)
            self.assertEqual(text.count("image: registry.example.org:5000/team/datacom-"), 8)
            self.assertEqual(text.count("namespace: datacom-sweeps"), 8)
            for population in read(folder, "populations.txt").split():
                experiment = read(folder, population, "experiment.textproto")
                self.assertIn("".join(f"    {line}\n" for line in experiment.splitlines()), text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as made:
            write_sweep(DATACOM, made)
            everything = {name + ".yaml": render(os.path.join(KUBERNETES, folder)) for name, folder in FOLDERS.items()}
            everything.update(sweep_files(made))
        for file_name, content in everything.items():
            with open(os.path.join(GOLDEN, file_name), "w", encoding="utf-8") as out:
                out.write(content)
        sys.exit()
    program = unittest.main(verbosity=1, exit=False)
    if not program.result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if program.result.skipped else 0)
