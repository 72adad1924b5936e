"""The switch of hosts.py: what it loses, doubles, reorders, delays and slows down, without and with real sockets."""
import collections
import ctypes
import os
import random
import select
import socket
import struct
import threading
import time
import unittest

from hosts import Direction, Link, Network, unavailable
from patience import PATIENCE

HEADERS = 14 + 20 + 8  # of Ethernet, IP and UDP
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


class DirectionTest(unittest.TestCase):
    def arrivals(self, link, frames=4000, size=1000, seed="seed", gap=0.0):
        direction = Direction(link, seed)
        return [direction.arrivals(gap * number, size) for number in range(frames)], direction.counts

    def test_a_plain_link_delivers_each_frame_once_after_its_delay(self):
        arrivals, counts = self.arrivals(Link(delay=0.25), frames=3, gap=1.0)
        self.assertEqual(arrivals, [[0.25], [1.25], [2.25]])
        self.assertEqual(counts, {"sent": 3})

    def test_the_shares_are_those_of_the_link_and_the_counts_are_those_of_the_frames(self):
        arrivals, counts = self.arrivals(Link(delay=1, loss=0.1, duplication=0.05, reordering=0.2, held=3))
        lost = sum(times == [] for times in arrivals)
        doubled = sum(len(times) == 2 for times in arrivals)
        held = sum(times[:1] == [4.0] for times in arrivals)
        self.assertEqual(counts, {"sent": 4000, "lost": lost, "duplicated": doubled, "reordered": held})
        # Five standard deviations; the seed is fixed.
        self.assertAlmostEqual(lost, 400, delta=95)
        self.assertAlmostEqual(doubled, 180, delta=68)
        self.assertAlmostEqual(held, 720, delta=121)

    def test_one_share_does_not_change_which_frames_another_one_meets(self):
        alone = [times == [] for times in self.arrivals(Link(loss=0.1))[0]]
        together = [times == [] for times in self.arrivals(Link(loss=0.1, duplication=0.5, reordering=0.5))[0]]
        self.assertEqual(alone, together)
        self.assertNotEqual(alone, [times == [] for times in self.arrivals(Link(loss=0.1), seed="another")[0]])

    def test_frames_leave_one_after_another_at_the_rate(self):
        arrivals, _ = self.arrivals(Link(delay=1, rate=8000), frames=3)  # 1000 bytes a second
        self.assertEqual(arrivals, [[2.0], [3.0], [4.0]])
        arrivals, _ = self.arrivals(Link(rate=8000), frames=3, gap=5.0)
        self.assertEqual(arrivals, [[1.0], [6.0], [11.0]], "the link was free in between")

    def test_a_full_queue_drops_its_tail(self):
        arrivals, counts = self.arrivals(Link(rate=8000, queue=3000), frames=5)
        self.assertEqual(arrivals, [[1.0], [2.0], [3.0], [], []])
        self.assertEqual(counts, {"sent": 5, "overflowed": 2})
        arrivals, _ = self.arrivals(Link(rate=8000, queue=3000), frames=6, gap=0.5)
        self.assertEqual(arrivals, [[1.0], [2.0], [3.0], [4.0], [5.0], []], "after 2.5 s 2500 bytes still wait")


def socket_on(host):
    """A UDP socket on a host; it stays there whichever thread uses it."""
    made = []

    def make():
        with open(f"/run/netns/{host.namespace}", "rb") as namespace:
            if LIBC.setns(namespace.fileno(), CLONE_NEWNET) != 0:  # of this thread only
                raise OSError(ctypes.get_errno(), "setns")
        made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        made[0].bind((host.address, 7000))
        made[0].setblocking(False)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


@unittest.skipIf(unavailable(), unavailable())
class SwitchTest(unittest.TestCase):
    def setUp(self):
        self.network = Network(2, Link(), seed=7)
        self.addCleanup(self.network.close)
        self.sockets = [socket_on(host) for host in self.network.hosts]
        for one in self.sockets:
            self.addCleanup(one.close)
        self.exchange(1)  # each host knows the other one's address

    def exchange(self, frames, size=100, burst=50, link=None):
        """Sends numbered frames from host 1 to host 2. Returns the numbers in the order of arrival."""
        a, b = self.network.hosts
        if link is not None:
            self.network.connect(link)
        before, arrived, deadline = self.network.counts(a, b)["sent"], [], time.monotonic() + PATIENCE
        for sent in range(frames):
            self.sockets[0].sendto(struct.pack("I", sent).ljust(size - HEADERS, b"."), (b.address, 7000))
            if (sent + 1) % burst > 0 and sent + 1 < frames:
                continue
            while True:
                counts = self.network.counts(a, b)
                expected = counts["sent"] - counts["lost"] - counts["overflowed"] + counts["duplicated"] - before
                if counts["sent"] - before == sent + 1 and len(arrived) == expected:
                    break
                self.assertLess(time.monotonic(), deadline, f"{counts}, {len(arrived)} arrived")
                if select.select([self.sockets[1]], [], [], 0.01)[0]:
                    arrived.append(struct.unpack_from("I", self.sockets[1].recv(65536))[0])
        return arrived

    def test_exactly_the_frames_that_the_seed_chooses_are_lost_or_doubled(self):
        shares = random.Random("7 1 2")  # the seed, the sender, the receiver
        expected = []
        for number in range(2000):
            lost, doubled, _ = shares.random(), shares.random(), shares.random()
            expected += [number] * (0 if lost < 0.1 else 2 if doubled < 0.05 else 1)
        self.assertEqual(self.exchange(2000, link=Link(loss=0.1, duplication=0.05)), expected)
        self.assertEqual(self.exchange(2000, link=Link(loss=0.1, duplication=0.05)), expected, "the same again")

    def test_only_frames_that_are_held_back_arrive_late(self):
        self.assertEqual(self.exchange(300), list(range(300)))
        shares = random.Random("7 1 2")
        held = [number for number in range(300) if [shares.random() for _ in range(3)][2] < 0.1]
        arrived = self.exchange(300, link=Link(reordering=0.1, held=0.2))
        self.assertEqual(sorted(arrived), list(range(300)))
        late = [number for place, number in enumerate(arrived) if max(arrived[:place + 1]) > number]
        self.assertGreater(len(late), 0)
        self.assertLessEqual(set(late), set(held))

    def test_no_answer_comes_before_both_delays_are_over(self):
        self.network.connect(Link(delay=0.1))
        a, b = self.network.hosts
        begin = time.monotonic()
        self.sockets[0].sendto(b"question", (b.address, 7000))
        self.assertTrue(select.select([self.sockets[1]], [], [], PATIENCE)[0])
        self.sockets[1].sendto(b"answer", (a.address, 7000))
        self.assertTrue(select.select([self.sockets[0]], [], [], PATIENCE)[0])
        self.assertGreaterEqual(time.monotonic() - begin, 0.2)

    def test_frames_are_no_faster_than_the_rate_and_a_full_queue_drops(self):
        begin = time.monotonic()
        self.assertEqual(self.exchange(40, size=1000, burst=40, link=Link(rate=800000)), list(range(40)))
        self.assertGreaterEqual(time.monotonic() - begin, 40 * 8000 / 800000)
        begin = time.monotonic()
        arrived = self.exchange(40, size=1000, burst=40, link=Link(rate=80000, queue=5000))
        most = 5 + (time.monotonic() - begin) * 80000 / 8000
        self.assertGreaterEqual(len(arrived), 4, "the queue holds four frames of 1,000 bytes and their headers")
        self.assertLessEqual(len(arrived), most)
        self.assertEqual(self.network.counts(*self.network.hosts)["overflowed"], 40 - len(arrived))

    def test_a_link_holds_for_its_pair_of_hosts_and_a_cut_loses_everything(self):
        a, b = self.network.hosts
        self.network.connect(Link(loss=1), [a], [b])
        self.assertEqual(self.exchange(10), [])
        self.assertEqual(self.network.counts(b, a), collections.Counter())
        self.network.connect(Link())
        self.network.cut([a], [b])
        self.sockets[0].sendto(b"lost", (b.address, 7000))
        deadline = time.monotonic() + PATIENCE
        while self.network.dropped == 0:
            self.assertLess(time.monotonic(), deadline)
            os.sched_yield()
        self.network.heal()
        self.assertEqual(self.exchange(10), list(range(10)))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
