"""A real Slurm cluster on one machine: Debian's slurmctld, a slurmd per node, munged.

Each node has a network namespace and a host name of its own; a bridge connects the nodes with this process, which is also the login node.
Everything lives in namespaces of mounts, network, processes and host names that end with the test: `enter()` puts the test into them.
Needs root, iproute2 and Debian's packages slurmctld, slurmd, slurm-client and munge; unavailable() names what is missing.
"""
import os
import shutil
import subprocess
import sys

from patience import PATIENCE
from watching import Watch

_INSIDE = "DATACOM_TEST_IN_NAMESPACES"
_PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge", "ip": "iproute2", "unshare": "util-linux",
             "setpriv": "util-linux"}
_CONTROLLER = "10.214.0.254"


def unavailable():
    """The reason why a cluster cannot be started here; None when it can."""
    missing = sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})
    if missing:
        return "a Slurm cluster needs " + " ".join(missing)
    if os.geteuid() != 0:
        return "a Slurm cluster needs root, for namespaces"
    tried = subprocess.run(["unshare", "--mount", "--net", "--pid", "--uts", "--fork", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else "namespaces are not permitted here: " + tried.stderr.strip()


def enter():
    """Repeats this program in namespaces of its own, which end with it."""
    if os.environ.get(_INSIDE):
        return
    os.execvpe("unshare", ["unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv],
               {**os.environ, _INSIDE: "1"})


def _call(*words):
    subprocess.run(words, check=True)


class Slurm:
    """Nodes n1, n2, ... at 10.214.0.1, .2, ... Partitions: low, the default, whose jobs go back into the queue when one of high needs their place."""

    def __init__(self, folder, nodes, processors=4, memory=6000, settings=()):
        assert os.environ.get(_INSIDE), "call enter() first"
        self.folder = folder
        self.names = [f"n{number}" for number in range(1, nodes + 1)]
        self._daemons = []
        for name in ("state", "spool", "log", "run"):
            os.makedirs(os.path.join(folder, name), exist_ok=True)
        os.chmod(folder, 0o755)
        for name in ("log", "run"):
            shutil.chown(os.path.join(folder, name), "munge", "munge")
        self._network()
        self._configure(processors, memory, settings)
        os.environ["SLURM_CONF"] = self.path("slurm.conf")
        self._start(["setpriv", "--reuid", "munge", "--regid", "munge", "--clear-groups", "munged", "--foreground", "--key-file", self._key(),
                     "--socket", self.path("run", "munge.socket"), "--pid-file", self.path("run", "munged.pid"),
                     "--log-file", self.path("log", "munged.log"), "--seed-file", self.path("run", "munged.seed")], "munged.out")
        self.until(lambda: os.path.exists(self.path("run", "munge.socket")))
        self._start(["slurmctld", "-D", "-f", self.path("slurm.conf")], "slurmctld.out")
        for name in self.names:
            os.makedirs(self.path("spool", name), exist_ok=True)
            self._start(["nsenter", f"--net=/run/netns/{name}", "unshare", "--uts", "sh", "-c", f"hostname {name} && exec slurmd -D -N {name} -f $SLURM_CONF"],
                        f"slurmd-{name}.out")
        self.until(lambda: len(self.run("sinfo", "--noheader", "--Node", "--states=idle", "--partition=low", "--format=%N").split()) == nodes)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    @staticmethod
    def run(*words):
        """The output of one of Slurm's commands."""
        return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False).stdout

    @staticmethod
    def submit(*words):
        """Submits a job with these words of sbatch; returns its number."""
        return subprocess.run(["sbatch", "--parsable", *words], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    def states(self, job):
        """State and node of each task of a job that the controller knows: {"7_0": ("RUNNING", "n1")}."""
        lines = self.run("squeue", "--array", "--noheader", "--states=all", "--jobs", job, "--format=%i|%T|%N").split()
        return {line.split("|")[0]: tuple(line.split("|")[1:]) for line in lines}

    def close(self):
        for daemon in reversed(self._daemons):
            daemon.terminate()
        for daemon in self._daemons:
            daemon.wait()

    def until(self, condition, folder=None):
        """Waits for a condition; returns False after PATIENCE. Checks it when a file below `folder` changed, and every second."""
        with Watch(folder or self.folder) as watch:
            for _ in range(int(PATIENCE)):
                if watch.wait(condition, 1):
                    return True
                ended = [daemon.args for daemon in self._daemons if daemon.poll() is not None]
                assert not ended, f"{ended} ended; see {self.path('log')}"
        return False

    def _start(self, words, log):
        with open(self.path("log", log), "wb") as file:
            self._daemons.append(subprocess.Popen(words, stdout=file, stderr=file))

    def _key(self):
        key = self.path("run", "munge.key")
        with open(key, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(os.urandom(128))
        shutil.chown(key, "munge", "munge")
        return key

    def _network(self):
        _call("hostname", "controller")
        os.makedirs("/run/netns", exist_ok=True)
        _call("mount", "-t", "tmpfs", "tmpfs", "/run/netns")
        _call("ip", "link", "set", "lo", "up")
        _call("ip", "link", "add", "bridge0", "type", "bridge")
        _call("ip", "addr", "add", f"{_CONTROLLER}/24", "dev", "bridge0")
        _call("ip", "link", "set", "bridge0", "up")
        for number, name in enumerate(self.names, 1):
            _call("ip", "netns", "add", name)
            _call("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            _call("ip", "link", "set", f"veth{number}", "master", "bridge0", "up")
            _call("ip", "-n", name, "link", "set", "lo", "up")
            _call("ip", "-n", name, "addr", "add", f"10.214.0.{number}/24", "dev", "eth0")
            _call("ip", "-n", name, "link", "set", "eth0", "up")

    def _configure(self, processors, memory, settings):
        lines = [
            "ClusterName=test", f"SlurmctldHost=controller({_CONTROLLER})", "SlurmUser=root", "AuthType=auth/munge",
            f"AuthInfo=socket={self.path('run', 'munge.socket')}", "CredType=cred/munge", f"StateSaveLocation={self.path('state')}",
            f"SlurmdSpoolDir={self.path('spool')}/%n", f"SlurmctldPidFile={self.path('run', 'slurmctld.pid')}",
            f"SlurmdPidFile={self.path('run')}/slurmd-%n.pid", f"SlurmctldLogFile={self.path('log', 'slurmctld.log')}",
            f"SlurmdLogFile={self.path('log')}/slurmd-%n.log", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "MpiDefault=none",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory", "SlurmdParameters=config_overrides", "ReturnToService=2",
            "KillWait=30", "SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0", "PreemptType=preempt/partition_prio",
            "PreemptMode=REQUEUE", *settings]
        lines += [f"NodeName={name} NodeAddr=10.214.0.{number} CPUs={processors} Boards=1 SocketsPerBoard=1 CoresPerSocket={processors} "
                  f"ThreadsPerCore=1 RealMemory={memory} State=UNKNOWN" for number, name in enumerate(self.names, 1)]
        lines += ["PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE",
                  "PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=2 PreemptMode=OFF"]
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
# SPDX-License-Identifier: Apache-2.0
