"""Runs with each role on a host of its own, over networks that lose, double, reorder and delay frames, are slow, or fail between a pair
of roles.

Whatever the network does, the end is exact, every row arrives once, and `datacom verify` finds no damage.
"""
import os
import re
import time
import unittest

from running import RunTest
from hosts import Link, unavailable
from hosts_running import RunOnHosts

# The long form repeats the runs with seeds of the switch and cuts each pair apart for 30 s.
LONG = "DATACOM_NETWORK_SEEDS" in os.environ
SEEDS = range(int(os.environ.get("DATACOM_NETWORK_SEEDS", "1")))
CUT_SECONDS = 30 if LONG else 8
STEPS = 4000 if LONG else 2000
PARTITION_STEPS = 12000
LINKS = {"1 % loss": Link(delay=0.001, loss=0.01),
         "100 ms round trip": Link(delay=0.05),
         "10 Mbit/s": Link(delay=0.001, rate=10e6),
         "duplication and reordering": Link(delay=0.002, duplication=0.02, reordering=0.05),
         "everything": Link(delay=0.05, loss=0.01, duplication=0.02, reordering=0.05, rate=10e6)}
CHOSEN = LINKS if LONG else {"everything": LINKS["everything"]}
ACTORS = ["actor-0", "actor-1"]
WAITING = ("replay", "learner", "evaluator-0")  # the actors may have made their last step
# Who is cut from whom, and a pattern of what `datacom status` then says about a role.
PARTITIONS = (
    (ACTORS, ["replay"], "replay", r"^waiting: learner waits for rows: member \d has [\d]+ of \d+ rows \(sessions: actor-\d .*last row \d+ s ago"),
    (ACTORS, ["learner"], "replay",
     r"^waiting: actor-\d waits for learner: member \d needs the policy of update \d+ or newer; its newest row has the one of update \d+$"),
    (["replay"], ["learner"], "learner", r"^waiting: the replay (has not answered yet|cannot be reached: .*)$"),
    (["evaluator-0"], ["learner"], "learner", r"^waiting: \d+ evaluations? to be reported \(evaluator-0 asked \d+ s ago\)$"),
)


@unittest.skipIf(unavailable(), unavailable())
class NetworkTest(RunTest):
    def folder_of(self, name):
        """A run of its own within the test."""
        self.folder = os.path.join(self.folder, name)
        os.mkdir(self.folder)

    def test_a_bad_network_costs_time_but_no_row(self):
        root = self.folder
        for seed in SEEDS:
            for name, link in CHOSEN.items():
                with self.subTest(link=name, seed=seed):
                    self.folder = root
                    self.folder_of(f"{name} {seed}".replace(" ", "-").replace("/", "-"))
                    run_, begin = RunOnHosts(self, link, seed), time.monotonic()
                    run_.start(STEPS, "run.checkpoint_updates=1000")
                    self.assertEqual(sorted(run_.check_end(STEPS)), ["1", "2"], "no session was lost")
                    counts = run_.network.counts()
                    for share, count in (("loss", "lost"), ("duplication", "duplicated"), ("reordering", "reordered")):
                        self.assertEqual(counts[count] > 0, getattr(link, share) > 0, counts)
                    print(f"{name}, seed {seed}: {STEPS} steps of two members in {time.monotonic() - begin:.1f} s; frames: {dict(counts)}")

    def wait_for_status(self, run_, role, pattern):
        """The line by which the status of a role, asked on its own host, says this. The roles' logs grow while they wait."""
        told = []

        def says():
            told.append(run_.told(role, asking=role))
            return re.search(pattern, told[-1], re.M)

        self.assertTrue(run_.wait(says, running=WAITING), told[-1] + run_.logs())
        return re.search(pattern, told[-1], re.M).group(0)

    def test_whoever_waits_across_a_partition_is_named_and_goes_on_after_it(self):
        root = self.folder
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.folder = root
                self.folder_of(f"cut-{seed}")
                run_ = RunOnHosts(self, Link(delay=0.005), seed)
                run_.start(PARTITION_STEPS, "run.checkpoint_updates=1000")
                for some, others, role, pattern in PARTITIONS:
                    run_.wait_for_episodes(len(run_.rows("episodes.csv")) + 40)
                    begin = time.monotonic()
                    run_.cut(some, others)
                    line = self.wait_for_status(run_, role, pattern)
                    run_.wait(lambda: False, max(0.0, begin + CUT_SECONDS - time.monotonic()), running=WAITING)
                    run_.network.heal()
                    print(f"{' and '.join(some)} | {others[0]}: {time.monotonic() - begin:.1f} s apart; {line[:150]}")
                self.assertEqual(sorted(run_.check_end(PARTITION_STEPS)), ["1", "2"], "no session was lost")


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
