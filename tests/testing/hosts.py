"""Several hosts on one machine: network namespaces connected by a switch that can delay, lose, double, reorder and slow down frames
and cut hosts apart.

Each host is a namespace with one Ethernet interface (a tap) whose other end this process holds. The switch is a thread that
moves frames between them. A Link says how they travel between two hosts. It replaces `tc netem` and a firewall on kernels that have
neither. As in a real network that is cut, packets vanish in both directions without an error. Needs root, iproute2 and
/dev/net/tun; unavailable() names what is missing.
"""
import collections
import dataclasses
import fcntl
import heapq
import itertools
import os
import random
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


@dataclasses.dataclass(frozen=True)
class Link:
    """How IP packets travel between two hosts, in each direction. The shares are probabilities of a frame."""
    delay: float = 0  # seconds
    loss: float = 0
    duplication: float = 0
    reordering: float = 0  # these frames arrive `held` seconds late, after others that were sent later
    held: float = 0.02
    rate: float = 0  # bits per second; 0: no limit
    queue: int = 65536  # bytes that may wait for their turn; a frame for which there is no room is dropped


class Direction:
    """One direction of a link. It is told the time, so its decisions follow from the link, the seed and the frames."""

    def __init__(self, link, seed):
        self.link = link
        self.counts = collections.Counter()  # sent, lost, overflowed, duplicated, reordered
        self._random = random.Random(seed)
        self._free = 0.0  # when the last bit of all accepted frames has left

    def arrivals(self, now, size):
        """When a frame of `size` bytes that is sent now arrives: no time when it is dropped, two when it is doubled."""
        link, counts = self.link, self.counts
        lost, doubled, reordered = (self._random.random() for _ in range(3))  # always three, so that no share changes another's frames
        counts["sent"] += 1
        if lost < link.loss:
            counts["lost"] += 1
            return []
        left = now
        if link.rate > 0:
            start = max(now, self._free)
            if (start - now) * link.rate / 8 + size > link.queue:
                counts["overflowed"] += 1
                return []
            left = self._free = start + 8 * size / link.rate
        first = left + link.delay
        if reordered < link.reordering:
            counts["reordered"] += 1
            first += link.held
        if doubled >= link.duplication:
            return [first]
        counts["duplicated"] += 1
        return [first, first]


class Host:
    _made = itertools.count(1)  # over all networks of the process: several may exist at a time

    def __init__(self, number):
        self.address = f"10.213.0.{number}"
        made = next(self._made)
        self.namespace = f"datacom-{os.getpid()}-{made}"
        self.mac = bytes([2, 0, 0, 0, 0, number])
        interface = f"dc{os.getpid()}h{made}"
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
    """Hosts 10.213.0.1 and up. connect, cut and heal may be called from any thread; close stops the switch and removes the hosts."""

    def __init__(self, hosts, link, seed=0):
        self.hosts = []
        self.dropped = 0  # frames between hosts that are cut apart, since the start
        self.seed = seed
        self._cut = frozenset()  # of pairs (mac, mac)
        self._end, self._told = os.pipe()
        try:
            for number in range(1, hosts + 1):
                self.hosts.append(Host(number))
        except BaseException:
            self._remove()
            raise
        self._directions = {}  # by the pair (mac of the sender, mac of the receiver)
        self.connect(link)
        self._switch = threading.Thread(target=self._run)
        self._switch.start()

    def connect(self, link, some=None, others=None):
        """Frames that are sent from now on between `some` and `others` (without them: between all hosts) travel as the link says."""
        pairs = [(a.mac, b.mac) for a in some or self.hosts for b in others or self.hosts if a is not b]
        pairs += [(b, a) for a, b in pairs]
        self._directions = self._directions | {pair: Direction(link, f"{self.seed} {pair[0][-1]} {pair[1][-1]}") for pair in pairs}

    def counts(self, sender=None, receiver=None):
        """The counts of Direction since the newest connect: of one direction, or of all together."""
        total = collections.Counter()
        for (a, b), direction in self._directions.items():
            if (sender is None or a == sender.mac) and (receiver is None or b == receiver.mac):
                total += direction.counts
        return total

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
        under_way, numbers = [], itertools.count()  # a heap of (arrival time, number of the frame, wire, frame)
        wires = {host.wire for host in self.hosts}
        while True:
            left = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
            ready, _, _ = select.select([*wires, self._end], [], [], left)
            if self._end in ready:
                return
            now = time.monotonic()
            while under_way and under_way[0][0] <= now:
                _, _, wire, frame = heapq.heappop(under_way)
                _send(wire, frame)
            for wire in ready:
                for frame in _frames(wire):
                    for arrival, to in self._targets(wire, frame, now):
                        heapq.heappush(under_way, (arrival, next(numbers), to, frame))

    def _targets(self, wire, frame, now):
        """Pairs (arrival time, wire)."""
        to, sender = frame[:6], frame[6:12]
        # Only IP packets are dropped or delayed: a failed address resolution would tell the host about the cut.
        if frame[12:14] != _IPV4 or (sender, to) not in self._directions:
            return [(now, host.wire) for host in self.hosts if host.wire != wire and to in (host.mac, _BROADCAST)]
        if (sender, to) in self._cut:
            self.dropped += 1
            return []
        target = next(host.wire for host in self.hosts if host.mac == to)
        return [(arrival, target) for arrival in self._directions[sender, to].arrivals(now, len(frame))]


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
