"""A run with each role on its own host, connected by a slow network that fails for 20 s and recovers."""
import time
import unittest

from running import RunTest
from hosts import Link, unavailable
from hosts_running import RunOnHosts

LINK = Link(delay=0.005)
PARTITION_SECONDS = 20  # longer than a connection with unacknowledged data survives, shorter than a session's lease
STEPS = 30000


@unittest.skipIf(unavailable(), unavailable())
class HostsTest(RunTest):
    def partition(self, run_, some, others, asking, stands_still):
        """Cuts two sets of roles apart for 20 s. The value that `stands_still` names in the status must not change in this time;
        afterwards the same sessions continue and hold no more credit than allowed."""
        before, sockets = run_.status(asking), run_.sockets("replay")
        dropped = run_.network.dropped
        run_.cut(some, others)
        cut = run_.status(asking)
        self.assertFalse(run_.wait(lambda: False, PARTITION_SECONDS))
        late = run_.status(asking)
        self.assertEqual(late[stands_still], cut[stands_still])
        self.assertGreater(run_.network.dropped, dropped, "nothing was cut")
        episodes = len(run_.rows("episodes.csv"))
        run_.network.heal()
        healed = time.monotonic()
        run_.wait_for_episodes(episodes + 20)
        print(f"{some} and {others} apart for {PARTITION_SECONDS} s: training continues {time.monotonic() - healed:.1f} s after healing")
        run_.wait(lambda: run_.status(asking)["sessions"] == before["sessions"])  # one actor may reconnect before the other
        after = run_.status(asking)
        self.assertEqual(after["sessions"], before["sessions"])
        self.assertEqual([state for _, _, state in after["sessions"]], ["connected", "connected"])
        for inserted, allowed, outstanding in zip(after["inserted"], after["allowed"], after["outstanding"]):
            self.assertLessEqual(inserted + outstanding, allowed)
        # Dead connections are closed on both sides.
        self.assertTrue(run_.wait(lambda: run_.sockets("replay") <= sockets), f"{run_.sockets('replay')} sockets, {sockets} before")

    def test_a_failing_network_costs_time_but_no_transition(self):
        run_ = RunOnHosts(self, LINK)
        run_.start(STEPS, "run.checkpoint_updates=5000")
        run_.wait_for_episodes(100)
        self.partition(run_, ["actor-0", "actor-1"], ["replay"], asking="learner", stands_still="inserted")
        self.partition(run_, ["learner"], ["replay"], asking="actor-0", stands_still="allowed")
        self.assertEqual(sorted(run_.check_end(STEPS)), ["1", "2"])  # no session was lost


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
