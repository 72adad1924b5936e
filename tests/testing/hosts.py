"""Several hosts on one machine: network namespaces connected by a switch that delays every frame and can cut hosts apart.

Each host is a namespace with one Ethernet interface (a tap) whose other end this process holds. The switch is a thread that
moves frames between them after `delay` seconds in each direction. It replaces `tc netem` and a firewall on kernels that have
neither. As in a real network that is cut, packets vanish in both directions without an error. Needs root, iproute2 and
/dev/net/tun; unavailable() names what is missing.
"""
import collections
import fcntl
import os
import select
import shutil
import struct
import subprocess
import threading
import time

_TUNSETIFF, _TAP_WITHOUT_HEADER = 0x400454CA, 0x0002 | 0x1000
_IPV4 = b"\x08\x00"
_BROADCAST = b"\xff" * 6
_FRAME = 65536


def unavailable():
    """The reason why hosts cannot be made here; None when they can."""
    if shutil.which("ip") is None:
        return "several hosts need ip (apt-get install iproute2)"
    if os.geteuid() != 0:
        return "several hosts need root, for network namespaces"
    name = f"datacom-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return "network namespaces are not permitted here: " + made.stderr.strip()
    subprocess.run(["ip", "netns", "del", name], check=True)
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError as error:
        return f"several hosts need /dev/net/tun: {error}"
    return None


class Host:
    def __init__(self, number):
        self.address = f"10.213.0.{number}"
        self.namespace = f"datacom-{os.getpid()}-{number}"
        self.mac = bytes([2, 0, 0, 0, 0, number])
        interface = f"dc{os.getpid()}h{number}"
        self.wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.wire, _TUNSETIFF, struct.pack("16sH22x", interface.encode(), _TAP_WITHOUT_HEADER))
        for command in (f"ip netns add {self.namespace}", f"ip link set {interface} netns {self.namespace}",
                        f"ip -n {self.namespace} link set {interface} address {self.mac.hex(':')} addrgenmode none",
                        f"ip -n {self.namespace} addr add {self.address}/24 dev {interface}",
                        f"ip -n {self.namespace} link set lo up", f"ip -n {self.namespace} link set {interface} up"):
            subprocess.run(command.split(), check=True)

    def command(self, *words):
        """The command that runs these words on this host with an unchanged process id."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def close(self):
        os.close(self.wire)
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)


class Network:
    """Hosts 10.213.0.1 and up. cut and heal may be called from any thread; close stops the switch and removes the hosts."""

    def __init__(self, hosts, delay):
        self.hosts = []
        self.dropped = 0  # frames, since the start
        self._delay = delay
        self._cut = frozenset()  # of pairs (mac, mac)
        self._end, self._told = os.pipe()
        try:
            for number in range(1, hosts + 1):
                self.hosts.append(Host(number))
        except BaseException:
            self._remove()
            raise
        self._switch = threading.Thread(target=self._run)
        self._switch.start()

    def cut(self, some, others):
        """Drops all packets between hosts of `some` and hosts of `others` from now on."""
        self._cut = frozenset(pair for a in some for b in others for pair in ((a.mac, b.mac), (b.mac, a.mac)))

    def heal(self):
        self._cut = frozenset()

    def close(self):
        os.write(self._told, b"x")
        self._switch.join()
        self._remove()

    def _remove(self):
        for host in self.hosts:
            host.close()
        os.close(self._end)
        os.close(self._told)

    def _run(self):
        under_way = collections.deque()  # (arrival time, wire, frame)
        wires = {host.wire for host in self.hosts}
        while True:
            left = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
            ready, _, _ = select.select([*wires, self._end], [], [], left)
            if self._end in ready:
                return
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, wire, frame = under_way.popleft()
                _send(wire, frame)
            for wire in ready:
                for frame in _frames(wire):
                    under_way.extend((now + self._delay, to, frame) for to in self._targets(wire, frame))

    def _targets(self, wire, frame):
        to, sender = frame[:6], frame[6:12]
        # Only IP packets are dropped: a failed address resolution would tell the host about the cut.
        if frame[12:14] == _IPV4 and (sender, to) in self._cut:
            self.dropped += 1
            return []
        return [host.wire for host in self.hosts if host.wire != wire and to in (host.mac, _BROADCAST)]


def _frames(wire):
    while True:
        try:
            yield os.read(wire, _FRAME)
        except BlockingIOError:
            return


def _send(wire, frame):
    try:
        os.write(wire, frame)
    except OSError:  # the interface's queue is full: drop the frame, as a real switch does
        pass
# SPDX-License-Identifier: Apache-2.0
