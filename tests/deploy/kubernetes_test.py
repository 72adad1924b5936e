#!/usr/bin/env python3
"""Compares the Kubernetes manifests that kustomize renders, and those that `datacom sweep` writes, with golden files.

usage: kubernetes_test.py DATACOM [unittest arguments]
       kubernetes_test.py DATACOM --write       rewrites the golden files; check the difference
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from manifests import FOLDERS, GOLDEN, KUBERNETES, PATIENCE, SOURCE, golden, read, render, render_overlay, why_no_kustomize, write_golden, write_run, write_sweep

DATACOM = os.path.abspath(sys.argv.pop(1))
NO_KUSTOMIZE = why_no_kustomize()


def sweep_files(folder):
    """Name of golden manifests -> the text that the sweep wrote."""
    files = {"sweep-kustomization": read(folder, "kustomization.yaml")}
    for population in read(folder, "populations.txt").split():
        files[f"sweep-{population}"] = read(folder, population, "population.yaml")
    return files


def plain_file(folder):
    """The same for a population that was written with --plain."""
    return {"sweep-plain": read(folder, "cartpole-datacom_device-cpu", "population.yaml")}


PODS = """# for all pods
tolerations:
- {key: spot, operator: Exists, effect: NoSchedule}
priorityClassName: research
imagePullSecrets:
  - name: registry
"""
AUTOSCALE = """apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: datacom-cpu
resources: [../deploy/kubernetes/overlays/cpu]
components: [../deploy/kubernetes/components/autoscale]
"""


RUNS = {"run-secure": ["--tls-secret", "tls-1"], "run-archive": ["--archive", "s3://bucket/hockey", "--archive-secret", "store", "--actors", "2"]}


def single_runs(folder):
    """The manifests of runs with fields for their pods: with TLS and with an archive, as a JobSet and without one."""
    pods, texts = os.path.join(folder, "pods.yaml"), {}
    with open(pods, "w", encoding="utf-8") as file:
        file.write(PODS)
    for name, options in RUNS.items():
        for form, more in ((name, []), (name + "-plain", ["--plain"])):
            run, _ = write_run(DATACOM, os.path.join(folder, form), "--pods", pods, *options, *more)
            texts[form] = read(run, "population.yaml")
    return texts


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-manifests-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_sweep_writes_the_golden_jobsets_and_one_kustomization(self):
        said = write_sweep(DATACOM, self.folder)
        self.assertIn(f"kubectl apply -k {self.folder}", said)
        written = sweep_files(self.folder)
        self.assertEqual(len(written), 3)
        for name, text in written.items():
            self.assertEqual(text, golden(name), name)
        self.assertNotIn("@", "".join(line.split("#")[0] for text in written.values() for line in text.splitlines()))
        again = write_sweep(DATACOM, self.folder)
        self.assertEqual((said, written), (again, sweep_files(self.folder)))

    def test_a_plain_sweep_writes_the_golden_jobs_and_needs_no_controller(self):
        said = write_sweep(DATACOM, self.folder, "--plain")
        self.assertIn("apply deploy/kubernetes/overlays/plain once", said)
        written = plain_file(self.folder)["sweep-plain"]
        self.assertEqual(written, golden("sweep-plain"))
        self.assertNotRegex(written.split("apiVersion", 1)[1], "(?i)jobset|kueue|@")
        refused = subprocess.run([DATACOM, "sweep", "cartpole/cost_budgets", "--plain", "--run-dir", self.folder], capture_output=True, text=True,
                                 timeout=PATIENCE, check=False, cwd=SOURCE)
        self.assertEqual((refused.returncode, refused.stderr), (2, "datacom: --plain: use it with --backend kubernetes\n"))

    def test_a_single_run_is_written_with_tls_or_an_archive_and_fields_for_its_pods(self):
        for name, text in single_runs(self.folder).items():
            self.assertEqual(text, golden(name), name)
            self.assertEqual(text.count("priorityClassName: research\n"), 4 if "secure" in name else 1)
            self.assertNotRegex(text, "  # (no )?tls\n")
        run, said = write_run(DATACOM, os.path.join(self.folder, "plain"))
        self.assertIn(f"kubectl apply -k {run}", said)
        self.assertIn("without --images the nodes look in their default registry for datacom-learner:latest and the others\n", said)
        self.assertIn("  tolerance_steps: 64\n", read(run, "experiment.textproto"))
        self.assertNotRegex(read(run, "population.yaml").split("apiVersion", 1)[1], "tls|@")

    def test_a_run_with_an_archive_is_for_one_machine_and_names_its_bucket_and_its_secret(self):
        run, said = write_run(DATACOM, self.folder, "--archive", "s3://bucket/hockey", "--archive-secret", "store", "--images", "example.org:1")
        self.assertIn("the pods wait for the secret store in namespace datacom-sweeps, with the environment variables of rclone\n", said)
        self.assertIn("copy a run with: datacom copy s3://bucket/hockey FOLDER\n", said)
        self.assertNotIn("without --images", said)
        self.assertIn("  tolerance_steps: 16\n", read(run, "experiment.textproto"))
        kustomization = read(run, "kustomization.yaml")
        self.assertIn("images:\n  - name: datacom-run\n    newName: example.org/datacom-run\n    newTag: \"1\"\nresources:\n", kustomization)
        for sweep, code in ((os.path.join(GOLDEN, "sweep.textproto"), 2), ("cartpole/cost_budgets", 0)):
            folder = os.path.join(self.folder, f"sweep-{code}")
            done = subprocess.run([DATACOM, "sweep", sweep, "--seeds", "0", "--backend", "kubernetes", "--archive", "gs://bucket/swept", "--run-dir", folder],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=SOURCE)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(os.path.exists(folder), code == 0)
            self.assertEqual("learner.device=cuda: the image datacom-run" in done.stderr, code == 2)
        self.assertIn('- "--archive=gs://bucket/swept/cartpole-datacom"\n', read(folder, "cartpole-datacom", "population.yaml"))

    def test_tolerations_of_ones_own_replace_that_of_nodes_with_gpus_and_the_command_says_so(self):
        pods, gpu, warning = os.path.join(self.folder, "pods.yaml"), "key: nvidia.com/gpu", "its tolerations are all that the learner has"
        for name, text, set_by_us, warned in (("none", "# tolerations: spot\npriorityClassName: research\n", True, False), ("spot", PODS, False, True),
                                              ("gpu", f"tolerations: [{{{gpu}}}]\n", False, False)):
            with open(pods, "w", encoding="utf-8") as file:
                file.write(text)
            run, said = write_run(DATACOM, self.folder, "--pods", pods, "--device", "cuda", name=name)
            manifest = read(run, "population.yaml")
            self.assertEqual(f"tolerations: [{{{gpu}, operator: Exists, effect: NoSchedule}}]" in manifest, set_by_us, name)
            self.assertEqual(f"--pods {pods}: {warning}" in said, warned, name)

    def test_wrong_fields_of_pods_are_refused_by_line(self):
        for text, reason in (("tolerations: []\ncontainers: []\n", 'line 2: "containers: []" is set by datacom'),
                             ("---\n", 'line 1: "---" is no field'), ("tolerations\n", 'line 1: "tolerations" is no field'),
                             ("a:\n\t- b\n", "line 2: ")):
            with open(os.path.join(self.folder, "pods.yaml"), "w", encoding="utf-8") as file:
                file.write(text)
            refused = subprocess.run([DATACOM, "train", "cartpole/datacom", "--backend", "kubernetes", "--pods", os.path.join(self.folder, "pods.yaml")],
                                     capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=self.folder)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(reason, refused.stderr)

    def test_options_apply_to_every_population_and_must_be_repeated(self):
        def sweep(*more):
            return subprocess.run([DATACOM, "sweep", "cartpole/cost_budgets", "--seeds", "0", "--backend", "kubernetes", "--run-dir", self.folder,
                                   *more], capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=SOURCE)
        typed = ["--envs", "10", "--device", "cuda", "--set", "learner.batch_size=48", "--set", "hyper.slack_beta=5"]
        first = sweep(*typed)
        self.assertEqual(first.returncode, 0, first.stderr)
        experiment = read(self.folder, "cartpole-datacom", "experiment.textproto")
        self.assertRegex(experiment, r'(?s)learner \{.*  batch_size: 48\n.*  device: "cuda"\n')
        self.assertIn("  slack_beta: 5\n", experiment)
        jobset = read(self.folder, "cartpole-datacom", "population.yaml")
        self.assertIn("image: datacom-learner-cuda", jobset)
        self.assertIn("- --envs=12\n", jobset)  # the next multiple of four members
        self.assertEqual(sweep(*typed).returncode, 0)
        for other, words in ((["--set", "learner.batch_size=32"], ["learner.batch_size: 48 -> 32", "choose another --run-dir"]),
                             (["--device", "cpu"], ['learner.device: "cuda" -> "cpu"']),
                             (["--set", "hyper.cost_budget=3"], ['axis "cost budget"', "hyper.cost_budget", "is also assigned by set"]),
                             (["--set", "seed=3"], ["seed", "name seeds in `seeds`"]),
                             (["--set", "learner.colour=1"], ["learner.colour"])):
            refused = sweep(*typed, *other) if other[0] == "--set" else sweep(*typed[:2], *typed[4:], *other)
            self.assertEqual(refused.returncode, 2, refused.stdout)
            for word in words:
                self.assertIn(word, refused.stderr)

    def test_the_base_runs_a_shipped_experiment_with_the_schedule_of_a_cluster(self):
        base = read(KUBERNETES, "base", "experiment.textproto")
        schedule = re.search(r"^schedule \{.*?^\}\n", base, re.DOTALL | re.MULTILINE).group()
        self.assertEqual(base.replace(schedule, ""), read(SOURCE, "deploy", "experiments", "cartpole", "datacom.textproto"))
        self.assertIn("tolerance_steps: 64\n", schedule)
        self.assertIn("publish_period: 16\n", schedule)

    def test_a_sweep_for_a_cluster_sets_its_schedule_unless_the_experiment_does(self):
        def schedule(folder, *typed):
            folder = os.path.join(self.folder, folder)
            subprocess.run([DATACOM, "sweep", "cartpole/cost_budgets", "--seeds", "0", "--run-dir", folder, "--render-only", *typed],
                           check=True, capture_output=True, timeout=PATIENCE, cwd=SOURCE)
            return read(folder, "cartpole-datacom", "experiment.textproto").split("\nschedule {\n")[1].split("}\n")[0]
        cluster = ["--backend", "kubernetes"]
        for folder, typed, tolerance, period in (("cluster", cluster, 64, 16), ("local", [], 16, 4),
                                                 ("typed", [*cluster, "--set", "schedule.publish_period=2"], 64, 2)):
            written = schedule(folder, *typed)
            self.assertIn(f"tolerance_steps: {tolerance}\n", written)
            self.assertIn(f"publish_period: {period}\n", written)

    def test_the_operators_rules_equal_those_of_prometheus(self):
        script = os.path.join(SOURCE, "deploy", "dev", "prometheus_rule.py")
        written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        self.assertEqual(read(KUBERNETES, "rules", "rules.yaml"), written)


FAKE_KUBECTL = """#!/bin/sh
echo "$@" >>"$FAKE/said"
case "$*" in
  *apply*) cat >>"$FAKE/applied" ;;
  *" exec copy-"*" -- ls -A /run/datacom/run") [ ! -e "$FAKE/broken" ] && ls -A "$FAKE/pod" ;;
  *" exec copy-"*" -- tar"*)
    shift 5
    for word in "$@"; do
      case "$word" in --*) echo "tar: unrecognized option '$word'" >&2; exit 1 ;; esac  # as a BusyBox without long options
    done
    shift 3
    tar -C "$FAKE/pod" "$@" ;;
esac
"""


class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="datacom-fetch-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("bin", "pod/policies", "pod/checkpoints"):
            os.makedirs(self.path(name))
        for name, text in (("bin/kubectl", FAKE_KUBECTL), ("pod/progress.csv", "member\n"), ("pod/policies/epoch_0000.snapshot", "x")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(self.path("bin/kubectl"), 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def fetch(self, *arguments):
        environment = {**os.environ, "FAKE": self.folder, "PATH": self.path("bin") + ":" + os.environ["PATH"]}
        return subprocess.run([os.path.join(KUBERNETES, "fetch"), *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment)

    def test_a_run_is_copied_through_a_pod_that_is_deleted_afterwards(self):
        result = self.fetch("hockey-1", self.path("mine"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(read(self.path("mine/progress.csv")), "member\n")
        self.assertTrue(os.path.exists(self.path("mine/policies/epoch_0000.snapshot")))
        self.assertFalse(os.path.exists(self.path("mine/checkpoints")))
        self.assertEqual(read(self.path("mine/not_fetched")), "checkpoints\n")
        calls = [line.split() for line in read(self.path("said")).splitlines()]
        self.assertEqual([call[2] for call in calls], ["apply", "wait", "exec", "exec", "delete"])
        self.assertEqual({tuple(call[:2]) for call in calls}, {("--namespace", "hockey-1")})
        self.assertIn("claimName: run}", read(self.path("applied")))
        self.assertIn("  name: copy-run\n", read(self.path("applied")))  # a pod that an earlier call left mounts the same run

    def test_every_run_of_a_sweep_is_copied_into_its_populations_folder(self):
        for folder, *more in (["sweep"], ["plain", "--plain"]):
            write_sweep(DATACOM, self.path(folder), *more)
            result = self.fetch(self.path(folder))
            self.assertEqual(result.returncode, 0, result.stderr)
            for population in read(self.path(f"{folder}/populations.txt")).split():
                self.assertEqual(read(self.path(f"{folder}/{population}/progress.csv")), "member\n")
                claim = re.search(r"name: (\S+-run)\n", read(self.path(f"{folder}/{population}/population.yaml"))).group(1)
                self.assertIn(f"claimName: {claim}}}", read(self.path("applied")))
            os.remove(self.path("applied"))
        self.assertIn("--namespace datacom-sweeps apply", read(self.path("said")))
        run, _ = write_run(DATACOM, self.folder)
        self.assertEqual(self.fetch(run).returncode, 0)
        self.assertEqual(read(run, "progress.csv"), "member\n")
        self.assertIn("claimName: hockey-1-run}", read(self.path("applied")))

    def test_a_run_whose_name_ends_like_that_of_a_volume_is_copied(self):
        run, _ = write_run(DATACOM, self.folder, name="first-run")
        self.assertEqual(self.fetch(run).returncode, 0)
        self.assertIn("claimName: first-run-run}", read(self.path("applied")))

    def test_a_run_with_an_archive_is_copied_from_there(self):
        run, _ = write_run(DATACOM, self.folder, "--archive", "s3://bucket/hockey")
        result = self.fetch(run)
        self.assertEqual((result.returncode, result.stderr), (2, "fetch: an archive keeps the run: datacom copy s3://bucket/hockey FOLDER\n"))

    def test_a_failed_copy_is_named_and_its_pod_deleted(self):
        write_sweep(DATACOM, self.path("sweep"))
        with open(self.path("broken"), "w", encoding="utf-8"):
            pass
        result = self.fetch(self.path("sweep"))
        self.assertEqual(result.returncode, 1)
        for population in read(self.path("sweep/populations.txt")).split():
            self.assertIn(f"{population} was not copied", result.stderr)
        self.assertEqual(read(self.path("said")).count(" delete pod copy-"), 2)
        self.assertEqual(self.fetch(self.path("pod")).returncode, 2)


@unittest.skipIf(NO_KUSTOMIZE, NO_KUSTOMIZE)
class Rendered(unittest.TestCase):
    def test_every_overlay_renders_to_its_golden_file(self):
        for name, folder in FOLDERS.items():
            with self.subTest(name):
                self.assertEqual(render(os.path.join(KUBERNETES, folder)), golden(name))

    def test_the_runbooks_overlay_renders_with_its_experiment_and_images(self):
        shown = re.search(r"cat >mine/kustomization.yaml <<'TEXT'\n(.*?)TEXT\n", read(SOURCE, "docs/clusters.md"), re.S).group(1)
        rendered = render_overlay(shown)
        self.assertIn("name: 'mine'", rendered)
        self.assertEqual(rendered.count("image: registry.example.org/team/datacom-"), 4)
        namespace = rendered.split("---\n")[0]
        self.assertIn("kind: Namespace\n", namespace)
        self.assertIn("  name: hockey-1\n", namespace)  # the run id
        self.assertIn("pod-security.kubernetes.io/enforce: restricted\n", namespace)

    def test_actors_scale_with_their_processor_time_where_the_component_is_used(self):
        rendered = render_overlay(AUTOSCALE)
        self.assertEqual(rendered, golden("autoscale"))
        actor = next(text for text in rendered.split("---\n") if "\nkind: Deployment\n" in text)
        self.assertNotIn("replicas:", actor)

    def test_a_single_run_with_tls_or_an_archive_renders(self):
        with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as folder:
            single_runs(folder)
            text = render(os.path.join(folder, "run-secure", "hockey-1"))
            kept = render(os.path.join(folder, "run-archive", "hockey-1"))
        self.assertEqual(kept.count("- secretRef:"), 1)
        self.assertEqual(kept.count("readOnlyRootFilesystem: true\n"), 2)
        self.assertEqual(text.count("secretName: tls-1\n"), 4)
        self.assertEqual(text.count("effect: NoSchedule\n"), 4)
        self.assertIn("  name: hockey-1\n", text)

    def test_one_apply_holds_all_jobsets_and_complete_experiments(self):
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

    def test_a_plain_sweep_renders_to_four_jobs_and_two_services_per_population(self):
        with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as folder:
            write_sweep(DATACOM, folder, "--plain")
            text = render(folder)
        counts = {kind: len(re.findall(f"^kind: {kind}$", text, re.MULTILINE)) for kind in ("Job", "Service", "PersistentVolumeClaim", "ConfigMap")}
        self.assertEqual(counts, {"Job": 8, "Service": 4, "PersistentVolumeClaim": 4, "ConfigMap": 2})
        self.assertEqual(text.count("\n  namespace: datacom-sweeps\n"), 18)
        self.assertEqual(text.count("podFailurePolicy:"), 8)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as made:
            write_sweep(DATACOM, made)
            texts = sweep_files(made)
            write_sweep(DATACOM, made, "--plain")
            with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as runs:
                texts.update({**single_runs(runs), "autoscale": render_overlay(AUTOSCALE)})
            write_golden({**{name: render(os.path.join(KUBERNETES, folder)) for name, folder in FOLDERS.items()}, **texts, **plain_file(made)})
        sys.exit()
    unittest.main(verbosity=2)  # tests/allowed_skips.txt has the names of skipped tests
# SPDX-License-Identifier: Apache-2.0
