"""The life of runs in a real Kubernetes cluster (deploy/dev/kubernetes_cluster) of two nodes, from the manifests and images as they are.

Needs the programs of `deploy/dev/kubernetes_cluster build`, or of DATACOM_KUBERNETES, and root; otherwise it is skipped.
"""
import collections
import csv
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
from kubernetes_1_20 import for_1_20  # noqa: E402
from network_policies import Enforcer  # noqa: E402
from patience import PATIENCE  # noqa: E402
from skipped import SKIPPED  # noqa: E402
from watching import Watch  # noqa: E402

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(SOURCE, "deploy", "dev", "kubernetes_cluster")
KUBERNETES = os.path.join(SOURCE, "deploy", "kubernetes")
ROLES = ("replay", "learner", "actor")
STRANGERS = ("monitoring", "elsewhere")  # namespaces of pods that are not of the run
CONNECT = """
import socket, sys
for name in sys.argv[1:]:
    address, port = name.split(":")
    try:
        socket.create_connection((address, int(port)), timeout=5).close()
        print(name)
    except OSError:
        pass
"""  # prints the addresses of its arguments that accept a connection
TINY = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "network.constraint_hidden=[16,16]", "replay.min_size=500",
        "run.steps_per_epoch=1000", "run.eval_episodes=2", "task_options.horizon=50", "run.checkpoint_updates=2000"]


# ---- outside of the cluster

def outside(binaries):
    """Makes the images and runs this file in a cluster."""
    why = subprocess.run([TOOL, "why-not"], stdout=subprocess.PIPE, text=True, check=False)
    if why.returncode != 0:
        print("skipped:", why.stdout.strip())
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="datacom-kubernetes-") as folder:
        images = []
        for role in ROLES:
            subprocess.run([os.path.join(SOURCE, "deploy/docker/make_root.sh"), role, binaries, os.path.join(folder, role)], check=True)
            roots = [os.path.join(folder, role, "root")]
            if os.path.isdir(os.path.join(folder, role, "writable")):
                roots.append(os.path.join(folder, role, "writable") + ":10001")
            images.append(pack(folder, f"docker.io/library/datacom-{role}:dev", roots, {"Entrypoint": [f"/usr/bin/datacom-{role}"], "User": "10001"}))
        shell = os.path.join(folder, "busybox")  # the image with which `fetch` copies
        os.makedirs(os.path.join(shell, "bin"))
        shutil.copy(shutil.which("busybox"), os.path.join(shell, "bin"))
        for name in ("sh", "ls", "tar", "tail"):
            os.symlink("busybox", os.path.join(shell, "bin", name))
        images.append(pack(folder, "docker.io/library/busybox:1.36", [shell], {"Env": ["PATH=/bin"]}))
        names = os.path.join(folder, "cluster")
        code = subprocess.run([TOOL, "run", "--nodes", "2", "--images", *images, "--", sys.executable, os.path.abspath(__file__), binaries,
                               *sys.argv[2:]], env={**os.environ, "DATACOM_TEST_IN_CLUSTER": names}, check=False).returncode
        if os.path.exists(names):
            with open(names, encoding="utf-8") as file:
                left = what_is_left(file.read())
            if left:
                print("the cluster has left behind:", *left)
                return 1
        return code


def what_is_left(cluster):
    """What still bears the name of a cluster that was taken down: folders, control groups, mounts, processes."""
    name = os.path.basename(cluster)
    found = [path for path in (cluster, *glob.glob(f"/sys/fs/cgroup/*/{name}")) if os.path.exists(path)]
    for path in ("/proc/self/mounts", *glob.glob("/proc/[0-9]*/cmdline")):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                if name in file.read():
                    found.append(path)
        except OSError:  # the process has ended
            continue
    return found


def pack(folder, tag, roots, config):
    out = os.path.join(folder, tag.rsplit("/", 1)[1].replace(":", "-") + ".tar")
    subprocess.run([TOOL, "image", tag, out, *roots, "--", json.dumps(config)], check=True)
    return out


# ---- inside

def kubectl(*words, check=True, **options):
    done = subprocess.run(["kubectl", *words], text=True, capture_output=True, check=False, **options)
    if check and done.returncode != 0:
        raise AssertionError(f"kubectl {' '.join(words)}: {done.stdout}{done.stderr}")
    return done


def rendered(folder):
    text = kubectl("kustomize", "--load-restrictor=LoadRestrictionsNone", folder).stdout
    return for_1_20(text) if int(os.environ["CLUSTER_MINOR"]) < 25 else text


class ClusterTest(unittest.TestCase):
    restarted = []  # programs of nodes; they end with the cluster

    def setUp(self):
        self.cluster = os.environ["CLUSTER"]
        self.folder = tempfile.mkdtemp(prefix="datacom-kubernetes-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.space = ""

    def until(self, what, condition):
        """Waits; checks when a program of the cluster has written, and every second."""
        with Watch(os.path.join(self.cluster, "log")) as watch:
            for _ in range(int(PATIENCE)):
                if watch.wait(condition, 1):
                    return
        self.fail(f"{what}\n" + kubectl("-n", self.space, "get", "pods", "-o", "wide").stdout
                  + kubectl("-n", self.space, "get", "events", "--sort-by=.lastTimestamp").stdout[-3000:])

    def get(self, *words):
        return json.loads(kubectl("-n", self.space, "get", *words, "-o", "json").stdout)

    def pods(self, role):
        return [pod for pod in self.get("pods", "-l", f"app.kubernetes.io/component={role}")["items"] if "deletionTimestamp" not in pod["metadata"]]

    def ready(self, role, count=1):
        states = [[one["ready"] for one in pod["status"].get("containerStatuses", [])] for pod in self.pods(role) if pod["status"]["phase"] == "Running"]
        return states == [[True]] * count

    def logs_of(self, pod):
        return kubectl("-n", self.space, "logs", pod["metadata"]["name"], check=False).stdout

    def logs(self, role):
        return "".join(self.logs_of(pod) for pod in self.get("pods", "-l", f"app.kubernetes.io/component={role}")["items"])

    def complete(self, job):
        conditions = self.get("job", job)["status"].get("conditions", [])
        return any(one["type"] == "Complete" and one["status"] == "True" for one in conditions)

    def run_folder(self):
        """The folder of the volume `run`, or its claim's; empty until it exists."""
        name = self.get("persistentvolumeclaim", "run")["spec"].get("volumeName")
        return self.get("persistentvolume", name)["spec"]["local"]["path"] + "/run" if name else ""

    def rows(self, name):
        path = os.path.join(self.run_folder(), name)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def apply(self, overlay, space, steps, settings=()):
        """Applies a user's own overlay, as docs/clusters.md shows it."""
        self.space = space
        mine = os.path.join(self.folder, space)
        os.makedirs(mine, exist_ok=True)
        with open(os.path.join(mine, "experiment.textproto"), "w", encoding="utf-8") as file:
            words = [word for setting in [*TINY, f"run.env_steps={steps}", *settings] for word in ("--set", setting)]
            file.write(subprocess.run([os.path.join(BIN, "datacom"), "config", "cartpole/datacom", "--seeds", "0-1", *words], stdout=subprocess.PIPE, text=True,
                                      check=True).stdout)
        with open(os.path.join(mine, "kustomization.yaml"), "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(f"""
                apiVersion: kustomize.config.k8s.io/v1beta1
                kind: Kustomization
                namespace: {space}
                resources: [{os.path.relpath(os.path.join(KUBERNETES, overlay), mine)}]
                images:
                  - {{name: datacom-replay, newName: docker.io/library/datacom-replay, newTag: dev}}
                  - {{name: datacom-learner, newName: docker.io/library/datacom-learner, newTag: dev}}
                  - {{name: datacom-actor, newName: docker.io/library/datacom-actor, newTag: dev}}
                configMapGenerator:
                  - {{name: experiment, behavior: replace, files: [experiment.textproto]}}
                patches:
                  - target: {{kind: StatefulSet|Deployment|Job}}
                    patch: |
                      - {{op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 50m}}
                """))
        self.manifests = rendered(mine)
        self.addCleanup(kubectl, "delete", "namespace", space, check=False)  # waits, so that the next test has the processors
        done = kubectl("apply", "-f", "-", input=self.manifests)
        self.assertNotIn("Warning", done.stderr)

    def evict(self, pod):
        version = "policy/v1beta1" if int(os.environ["CLUSTER_MINOR"]) < 22 else "policy/v1"
        body = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": pod, "namespace": self.space}}
        return kubectl("create", "--raw", f"/api/v1/namespaces/{self.space}/pods/{pod}/eviction", "-f", "-", check=False, input=json.dumps(body))

    def check_end(self, steps):
        self.until("learner and evaluator complete", lambda: self.complete("learner") and self.complete("evaluator"))
        ends = [row["member"] for row in self.rows("progress.csv") if row["env_steps"] == str(steps)]
        self.assertEqual(sorted(ends), ["0", "1"])
        keys = [(row["member"], row["session"], row["environment"], row["episode"]) for row in self.rows("episodes.csv")]
        self.assertEqual(max(collections.Counter(keys).values()), 1, "an episode was recorded twice")

    def test_the_server_accepts_every_overlay(self):
        for overlay in ("dev", "cpu", "gpu", "secure", "plain"):
            with self.subTest(overlay):
                text = rendered(os.path.join(KUBERNETES, "overlays", overlay))
                space = re.search(r"^kind: Namespace\n(?:.*\n)*?  name: (\S+)$", text, re.MULTILINE).group(1)
                kubectl("create", "namespace", space)  # a dry run makes none, and the other objects need it
                self.addCleanup(kubectl, "delete", "namespace", space, "--wait=false", check=False)
                done = kubectl("apply", "--dry-run=server", "--validate=true", "-f", "-", input=text)  # unknown fields fail
                warned = [line for line in done.stderr.splitlines() if "missing the kubectl.kubernetes.io/last-applied-configuration" not in line]
                self.assertEqual(warned, [])
                self.assertEqual(done.stdout.count("(server dry run)"), len(text.split("---\n")), done.stdout)

    def test_a_run_survives_evictions_a_drain_and_the_loss_of_a_node(self):
        steps = 100000
        self.apply("overlays/dev", "run-1", steps)
        self.until("all pods are ready", lambda: all(self.ready(role) for role in ("replay", "learner", "actor", "evaluator")))
        self.check_rights()
        self.until("updates", lambda: len(self.rows("progress.csv")) > 4)

        learner = self.pods("learner")[0]["metadata"]["name"]
        self.assertEqual(self.evict(learner).returncode, 0)
        self.until("another learner resumed", lambda: re.search(r"incarnation=2 update=[1-9]", self.logs("learner")))
        refused = self.evict("replay-0")
        self.assertIn("disruption budget", refused.stderr)

        node = self.pods("learner")[0]["spec"]["nodeName"]  # its volume is there
        kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--pod-selector=app.kubernetes.io/component=learner")
        kubectl("uncordon", node)
        self.until("a third learner resumed", lambda: re.search(r"incarnation=3 update=[1-9]", self.logs("learner")))

        kubectl("-n", self.space, "scale", "deployment", "actor", "--replicas=6")
        self.until("six actors", lambda: self.ready("actor", 6))
        kubectl("-n", self.space, "scale", "deployment", "actor", "--replicas=0")
        self.until("no actor", lambda: self.pods("actor") == [])
        kubectl("-n", self.space, "scale", "deployment", "actor", "--replicas=1")
        self.until("one actor", lambda: self.ready("actor", 1))

        # Job and pods go; volumes stay.
        kubectl("-n", self.space, "delete", "job", "learner")
        kubectl("apply", "-f", "-", input=self.manifests)
        self.until("a fourth learner resumed", lambda: re.search(r"incarnation=4 update=[1-9]", self.logs("learner")))

        self.lose_node(self.pods("replay")[0]["spec"]["nodeName"])
        self.check_end(steps)
        # The actor stays: a Deployment would restart it in vain.
        self.until("a waiting actor", lambda: "the run has all its rows; waiting" in self.logs("actor") and self.ready("actor"))
        restarts = self.pods("actor")[0]["status"]["containerStatuses"][0]["restartCount"]
        fetched = os.path.join(self.folder, "fetched")
        done = subprocess.run([os.path.join(KUBERNETES, "fetch"), self.space, fetched], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        checked = subprocess.run([os.path.join(BIN, "datacom"), "verify", fetched], text=True, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertRegex(checked.stdout, r"checkpoints +not fetched")
        actor = self.pods("actor")[0]["status"]["containerStatuses"][0]
        self.assertEqual((actor["restartCount"], actor["ready"]), (restarts, True))

    def test_a_plain_sweep_ends_by_itself_and_is_fetched(self):
        self.space = "datacom-sweeps"
        sweep = os.path.join(self.folder, "sweep")
        file = os.path.join(self.folder, "sweep.textproto")
        with open(file, "w", encoding="utf-8") as text:
            text.write('name: "plain"\nexperiments: "cartpole/datacom"\nseeds: "0-1"\naxes { name: "batch" '
                       'points { label: "32" set: "learner.batch_size=32" } points { label: "64" set: "learner.batch_size=64" } }\n')
        settings = [word for setting in [*TINY, "run.env_steps=3000"] for word in ("--set", setting)]
        subprocess.run([os.path.join(BIN, "datacom"), "sweep", file, "--backend", "kubernetes", "--plain", "--actors", "2", "--images",
                        "docker.io/library:dev", "--run-dir", sweep, *settings], check=True, stdout=subprocess.DEVNULL)
        kubectl("apply", "-f", "-", input=rendered(os.path.join(KUBERNETES, "overlays", "plain")))
        self.addCleanup(kubectl, "delete", "namespace", self.space, check=False)
        with open(os.path.join(sweep, "populations.txt"), encoding="utf-8") as names:
            populations = names.read().split()
        self.assertEqual(len(populations), 2)
        manifests = re.sub(r"(requests:\n +cpu: )\S+", r"\g<1>50m", rendered(sweep))  # two processors for eight pods and more
        done = kubectl("apply", "-f", "-", input=manifests)
        self.assertNotIn("Warning", done.stderr)
        jobs = [job["metadata"]["name"] for job in self.get("jobs")["items"]]
        self.assertEqual(len(jobs), 8)
        self.until("all jobs complete, those of the replays too", lambda: all(self.complete(job) for job in jobs))
        done = subprocess.run([os.path.join(KUBERNETES, "fetch"), sweep], text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        for population in populations:
            checked = subprocess.run([os.path.join(BIN, "datacom"), "verify", os.path.join(sweep, population)], text=True, capture_output=True, check=False)
            self.assertEqual(checked.returncode, 0, checked.stdout)
            with open(os.path.join(sweep, population, "progress.csv"), encoding="utf-8") as progress:
                ends = [row["member"] for row in csv.DictReader(progress) if row["env_steps"] == "3000"]
            self.assertEqual(sorted(ends), ["0", "1"])

    def check_rights(self):
        """Checks what the kernel says of a pod's process; 1.20 has no admission for the namespace's restricted pod security."""
        found = 0
        for path in glob.glob("/proc/[0-9]*"):
            try:
                with open(path + "/cmdline", encoding="utf-8", errors="replace") as file:
                    words = file.read()
                if not words.startswith("/usr/bin/datacom-") or f"--run-id={self.space}\0" not in words:
                    continue
                with open(path + "/status", encoding="utf-8") as file:
                    status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
                with open(path + "/mounts", encoding="utf-8") as file:
                    root = next(line.split()[3] for line in file if line.split()[1] == "/")
            except OSError:  # it has ended
                continue
            found += 1
            self.assertEqual(status["Uid"].split(), ["10001"] * 4)
            self.assertEqual({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}, {"0" * 16})
            self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
            self.assertIn("ro", root.split(","))
        self.assertEqual(found, 4)

    def newest(self, role):
        """The pod of a role that was made last and has not ended."""
        pods = [pod for pod in self.pods(role) if pod["status"]["phase"] in ("Pending", "Running")]
        return max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"]) if pods else None

    def steps_made(self):
        return max((int(row["env_steps"]) for row in self.rows("progress.csv")), default=0)

    def updates_made(self, address):
        """What the learner at this address says in /metrics: updates since it was started."""
        with urllib.request.urlopen(f"http://{address}:9100/metrics", timeout=PATIENCE) as answer:
            return int(float(re.search(r"^datacom_learner_updates_total(?:{.*})? (\S+)$", answer.read().decode(), re.MULTILINE).group(1)))

    def test_ten_preemptions_lose_no_row_and_at_most_the_updates_since_a_checkpoint(self):
        steps, each, interval = 66000, 6000, 2000
        self.apply("overlays/dev", "run-2", steps, [f"replay.capacity={steps}"])
        kubectl("-n", self.space, "scale", "deployment", "actor", "--replicas=2")
        incarnation, again = 1, []
        for turn in range(10):
            self.until("steps", lambda: self.steps_made() >= (turn + 1) * each)
            pod = self.newest("learner")
            name, begin = pod["metadata"]["name"], int(re.search(r"incarnation=\d+ update=(\d+) of", self.logs_of(pod)).group(1))
            if turn in (4, 9):  # without notice
                made = begin + self.updates_made(pod["status"]["podIP"])
                os.kill(self.process_of(pod["status"]["podIP"]), signal.SIGKILL)
            else:  # a node leaves with a notice of 30 s, and comes back; its actors and the evaluator leave too
                with subprocess.Popen(["kubectl", "-n", self.space, "logs", "--follow", name], stdout=subprocess.PIPE, text=True) as follower:
                    node = pod["spec"]["nodeName"]
                    kubectl("drain", node, "--force", "--grace-period=30", "--pod-selector=app.kubernetes.io/component!=replay")
                    made = int(re.search(r"interrupted; checkpoint written update=(\d+)", follower.communicate(timeout=PATIENCE)[0]).group(1))
                kubectl("uncordon", node)
            incarnation += 1
            resumed = re.compile(rf"incarnation={incarnation} update=(\d+) of")
            self.until("another learner resumed", lambda: resumed.search(self.logs("learner")))
            again.append(made - int(resumed.search(self.logs("learner")).group(1)))
        print("updates made again:", again, flush=True)
        self.assertEqual([again[turn] for turn in range(10) if turn not in (4, 9)], [0] * 8)
        self.assertTrue(all(0 <= again[turn] <= interval for turn in (4, 9)), again)
        self.check_end(steps)
        checked = subprocess.run([os.path.join(os.path.dirname(BIN), "tests", "check_rows"), self.newest("replay")["status"]["podIP"] + ":7000"],
                                 text=True, capture_output=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(sum(int(rows) for rows in re.findall(r" rows=(\d+)", checked.stdout)), 2 * steps)

    def lose_node(self, node):
        """Kills all containers, containerd and the kubelet of a node at once; when Kubernetes has noticed, starts the node again."""
        log = os.path.join(self.cluster, "log")
        for name in ("kubelet", "containerd"):
            with open(os.path.join(log, f"{node}-{name}.pid"), encoding="utf-8") as file:
                os.kill(int(file.read()), 9)
        with open(os.path.join(self.cluster, node, "kubelet.words"), encoding="utf-8") as file:
            kubelet = json.load(file)
        group = f"/sys/fs/cgroup/pids/{os.path.basename(self.cluster)}/{node}"
        for path in glob.glob(f"{group}/**/cgroup.procs", recursive=True):
            with open(path, encoding="utf-8") as file:
                for process in file.read().split():
                    subprocess.run(["kill", "-9", process], check=False, capture_output=True)

        def status(of):
            return [one["status"] for one in self.get("node", of)["status"]["conditions"] if one["type"] == "Ready"][0]
        self.until("the node is lost", lambda: status(node) != "True")
        with open(os.path.join(self.cluster, node, "start"), encoding="utf-8") as file:
            inside = file.read().split()
        self.start_again(node, "containerd", [*inside, "containerd", "--config", os.path.join(self.cluster, node, "containerd.toml")])
        words = [*inside, *kubelet]
        running = self.start_again(node, "kubelet", words)

        def back():
            nonlocal running
            if running.poll() is not None:  # it ends when containerd does not answer yet; a service manager starts it again, too
                running = self.start_again(node, "kubelet", words)
            return status(node) == "True"
        self.until("the node is back", back)

    def start_again(self, node, name, words):
        """Starts a program of a node; it ends with the cluster."""
        with open(os.path.join(self.cluster, "log", f"{node}-{name}-again.log"), "ab") as file:
            self.restarted.append(subprocess.Popen(words, stdout=file, stderr=file, stdin=subprocess.DEVNULL))
        return self.restarted[-1]

    def test_with_tls_only_holders_of_the_secret_take_part_and_policies_say_who_reaches_whom(self):
        steps = 400000  # more than it makes
        self.apply("overlays/secure", "run-3", steps)
        tls = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy/dev/make_tls.sh"), tls], check=True, capture_output=True)
        files = ("ca.crt", "tls.crt", "tls.key", "token")
        self.assertFalse(any(pod["status"]["phase"] == "Running" for role in ("replay", "actor") for pod in self.pods(role)))
        kubectl("-n", self.space, "create", "secret", "generic", "tls", *(f"--from-file={tls}/{name}" for name in files))
        self.until("all pods are ready", lambda: all(self.ready(role, count) for role, count in (
            ("replay", 1), ("learner", 1), ("actor", 4), ("evaluator", 1))))
        self.assertGreater(len({pod["spec"]["nodeName"] for pod in self.pods("actor")}), 1, "all actors are on one node")
        for space in STRANGERS:
            kubectl("create", "namespace", space)
            self.addCleanup(kubectl, "delete", "namespace", space, "--wait=false")
            kubectl("label", "namespace", space, f"kubernetes.io/metadata.name={space}", "--overwrite")  # servers from 1.21 on do that
            kubectl("-n", space, "run", "stranger", "--image=docker.io/library/busybox:1.36", "--command", "--", "tail", "-f", "/dev/null")
        self.until("strangers", lambda: all(pod["status"]["phase"] == "Running" for pod in self.strangers()))

        enforcer = Enforcer(self.cluster)
        before = self.reached()
        self.assertIn(("evaluator", "replay", 7000), before)  # nothing is enforced yet
        self.assertIn(("elsewhere", "learner", 7000), before)
        enforcer.apply()
        allowed = {("actor", "replay", 7000), ("learner", "replay", 7000), ("actor", "learner", 7000), ("evaluator", "learner", 7000),
                   *(("monitoring", role, 9100) for role in ("replay", "learner", "actor", "evaluator"))}
        self.assertEqual(self.reached(), allowed)
        made = self.steps_made()
        self.until("steps under the policies", lambda: self.steps_made() > made + 1000)

        with open(os.path.join(tls, "token"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef-another-token\n")
        kubectl("-n", self.space, "create", "secret", "generic", "other", *(f"--from-file={tls}/{name}" for name in files))
        kubectl("-n", self.space, "patch", "deployment", "actor", "--type=json", "-p",
                '[{"op": "replace", "path": "/spec/template/spec/volumes/0/secret/secretName", "value": "other"}]')
        self.until("a refused actor", lambda: enforcer.apply() or "the call's token is not this run's" in self.logs("actor"))

    def reached(self):
        """(role, role, port): who can connect to whom, tried from inside of the pods' networks."""
        pods = [(role, pod) for role in ("replay", "learner", "actor", "evaluator") for pod in self.pods(role)]
        pods += [(pod["metadata"]["namespace"], pod) for pod in self.strangers()]
        targets = [f"{pod['status']['podIP']}:{port}" for role, pod in pods if role not in STRANGERS for port in (7000, 9100)]
        roles = {pod["status"]["podIP"]: role for role, pod in pods}
        found = set()
        for source, pod in pods:
            own = pod["status"]["podIP"]
            words = ["nsenter", f"--net=/proc/{self.process_of(own)}/ns/net", sys.executable, "-c", CONNECT, *targets]
            for reached in subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.split():
                address, port = reached.split(":")
                if address != own:
                    found.add((source, roles[address], int(port)))
        return found

    @staticmethod
    def strangers():
        return [json.loads(kubectl("-n", space, "get", "pod", "stranger", "-o", "json").stdout) for space in STRANGERS]

    @staticmethod
    def process_of(address):
        """The process of a pod with this address; None when there is none."""
        for process in glob.glob("/proc/[0-9]*"):
            try:
                with open(process + "/cmdline", "rb") as file:
                    if not file.read().startswith((b"/usr/bin/datacom-", b"tail\0")):
                        continue
                with open(process + "/net/fib_trie", encoding="utf-8") as file:
                    if f"|-- {address}\n" in file.read():
                        return int(os.path.basename(process))
            except OSError:  # it has ended
                continue
        return None


if __name__ == "__main__":
    BIN = os.path.abspath(sys.argv[1])
    if not os.environ.get("DATACOM_TEST_IN_CLUSTER"):
        sys.exit(outside(BIN))
    with open(os.environ["DATACOM_TEST_IN_CLUSTER"], "w", encoding="utf-8") as name_file:
        name_file.write(os.environ["CLUSTER"])
    del sys.argv[1]
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
