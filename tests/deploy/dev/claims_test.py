"""Tests deploy/dev/claims.py: intervals and figures computed by hand, and the rule of the verdicts."""
import math
import os
import random
import re
import shutil
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "deploy", "dev"))
import claims  # noqa: E402  the path comes first
import intervals  # noqa: E402
import training_times  # noqa: E402
from results import RESULTS, WINDOW, Entry, entries  # noqa: E402


class Intervals(unittest.TestCase):
    def test_of_equal_variances_and_sizes_the_interval_is_the_one_of_the_pooled_test(self):
        # Means 2 and 5, variances 1, three values each: 4 degrees of freedom, error sqrt(2 / 3), t = 2.776.
        difference, half = intervals.welch(intervals.sample([1, 2, 3]), intervals.sample([4, 5, 6]))
        self.assertAlmostEqual(difference, -3)
        self.assertAlmostEqual(half, 2.776 * (2 / 3) ** 0.5, places=3)

    def test_a_group_without_variance_leaves_the_degrees_of_freedom_of_the_other(self):
        difference, half = intervals.welch(intervals.sample([7, 7, 7, 7]), intervals.sample([1, 2, 3]))  # error sqrt(1 / 3), 2 degrees of freedom, t = 4.303
        self.assertAlmostEqual(difference, 5)
        self.assertAlmostEqual(half, 4.303 / 3 ** 0.5, places=3)
        self.assertEqual(intervals.welch(intervals.sample([1, 1]), intervals.sample([3, 3])), (-2, 0))

    def test_equal_values_have_an_interval_without_width(self):
        for value in (0.1, 0.92):  # whose sums are rounded
            self.assertEqual(intervals.sample([value] * 5), (value, 0, 5))
            self.assertEqual(intervals.half_width([value] * 5), 0)

    def test_no_degrees_of_freedom_are_refused_by_their_number(self):
        with self.assertRaisesRegex(ValueError, "no value for 0 degrees of freedom and the level 0.95"):
            intervals.student_t(0)


class Rule(unittest.TestCase):
    # With four values of variance 1, and four equal ones, the half width at 95 % is 3.182 / 2 = 1.591, at 99 % 5.841 / 2 = 2.920.
    def judge(self, relation, first, second, **options):
        samples = [intervals.Sample(*of, 4) for of in (first, second)]
        return claims.judge(relation, *samples, **options)

    def test_a_comparison_holds_only_if_the_whole_interval_is_on_the_claimed_side(self):
        for relation, mean, verdict in (
                ("more", 11.6, "holds"), ("more", 11.58, "undecided"), ("more", 8.4, "does not hold"),
                ("less", 8.4, "holds"), ("less", 8.42, "undecided"), ("less", 11.6, "does not hold")):
            self.assertEqual(self.judge(relation, (mean, 1), (10, 0)), verdict, (relation, mean))

    def test_groups_are_alike_if_the_first_is_surely_between_75_and_125_percent_of_the_second(self):
        for sign in (1, -1):
            for mean, verdict in ((13.6, "holds"), (13.58, "undecided"), (18.4, "holds"), (18.42, "undecided"),
                                  (10.42, "undecided"), (10.4, "does not hold"), (21.58, "undecided"), (21.6, "does not hold")):
                self.assertEqual(self.judge("alike", (sign * mean, 1), (sign * 16, 0)), verdict, (sign, mean))
        # 125 % of the second varies, too: 15.3 is 2.8 above it, and the half width is 1.25 times 4.303 / sqrt(3) = 2.48.
        self.assertEqual(claims.judge("alike", intervals.sample([15.3] * 3), intervals.sample([9, 10, 11])), "undecided")

    def test_one_comparison_of_several_refutes_a_claim_at_a_level_for_all_of_them(self):
        self.assertEqual(self.judge("more", (8, 1), (10, 0)), "does not hold")
        self.assertEqual(self.judge("more", (8, 1), (10, 0), comparisons=5), "undecided")  # at 99 %
        self.assertEqual(self.judge("more", (7, 1), (10, 0), comparisons=5), "does not hold")
        self.assertEqual(self.judge("more", (12, 1), (10, 0), comparisons=5), "holds")  # all of them must

    def test_two_looks_together_err_as_often_as_the_page_says(self):
        """Known variances, equal means, three seeds at first; the second look is at the seeds that would decide if means stayed, at most SEEDS."""
        draw, level, first, tries, wrong = random.Random(1).gauss, 1.96, 3, 20_000, 0
        for _ in range(tries):
            seen = draw(0, 1)
            seeds = math.ceil(first * (level / abs(seen)) ** 2)
            if abs(seen) > level:
                wrong += 1
            elif seeds <= claims.SEEDS:
                wrong += abs(seen * math.sqrt(first) + draw(0, 1) * math.sqrt(seeds - first)) / math.sqrt(seeds) > level
        with open(os.path.join(SOURCE, "docs/claims.md"), encoding="utf-8") as file:
            self.assertIn(f"together err with about {100 * wrong / tries:.0f} %", " ".join(file.read().split()))

    def test_no_two_groups_of_the_records_are_alike_in_a_quantity_that_differs(self):
        alike, different = set(), set()
        for each, _, found in claims.judge_all(entries(), RESULTS):
            for comparison, one in zip(each.comparisons, found):
                if one.verdict == "holds":
                    (alike if comparison.relation == "alike" else different).add((comparison.quantity, frozenset((comparison.first, comparison.second))))
        self.assertTrue(alike and different)
        self.assertFalse(alike & different)

    def test_a_claim_is_as_strong_as_its_weakest_comparison(self):
        self.assertEqual(claims.joined(["holds", "holds"]), "holds")
        self.assertEqual(claims.joined(["holds", "undecided"]), "undecided")
        self.assertEqual(claims.joined(["undecided", "no records"]), "no records")
        self.assertEqual(claims.joined(["no records", "does not hold", "holds"]), "does not hold")


class Page(unittest.TestCase):
    def setUp(self):
        self.results = tempfile.mkdtemp(prefix="datacom-claims-")
        self.addCleanup(shutil.rmtree, self.results)

    def leave(self, name, returns, steps=300_000):
        """Records of one member for each list of returns, which are evaluated at equal distances."""
        folder = os.path.join(self.results, *name.split("/"))
        os.makedirs(folder)
        with open(os.path.join(folder, "experiment.textproto"), "w", encoding="utf-8") as file:
            file.write(f'task: "{name.split("/")[0]}"\n' + "members {\n}\n" * len(returns))
        with open(os.path.join(folder, "progress.csv"), "w", encoding="utf-8") as file:
            file.write("member,env_steps,eval_episodes,eval_discounted_return,eval_sum_cost,eval_max_violation\n")
            for member, own in enumerate(returns):
                for index, value in enumerate(own):
                    file.write(f"{member},{steps * index // (len(own) - 1)},25,{value},{10 * value},0.5\n")
        return Entry("train", name, f"0-{len(returns) - 1}", steps, name)

    def judged(self, quantity, relation, listed, most=1_000_000):
        comparison, = claims.compare(quantity, relation, listed[0].name, listed[1].name, steps=most)
        return claims.judged(comparison, claims.Records(listed, self.results))

    def test_values_are_those_of_the_last_steps_or_of_the_whole_training(self):
        # Evaluated at 0, 100,000, 200,000 and 300,000 steps; the window is the last one alone.
        listed = [self.leave("a/one", [[0, 0, 0, 8], [0, 0, 0, 9], [0, 0, 0, 10]]), self.leave("a/two", [[5, 5, 5, 1], [5, 5, 5, 2], [5, 5, 5, 3]])]
        verdict, line, *_ = self.judged("J", "more", listed)
        self.assertEqual(verdict, "holds")
        # Difference 7, error sqrt(2 / 3), 4 degrees of freedom: 7 +- 2.267.
        self.assertEqual(line, "J of a/one more than a/two: 9 (3 seeds) and 2 (3 seeds) at 300,000 steps, difference 4.73 to 9.27: holds")
        self.assertEqual(self.judged("mean J", "less", listed)[0], "holds")  # 2, 2.25, 2.5 and 4, 4.25, 4.5
        self.assertIn(" 90 (3 seeds) and 20 ", self.judged("cost", "more", listed)[1])
        verdict, line, *_ = self.judged("J", "more", listed, most=200_000)
        self.assertEqual(verdict, "does not hold")
        self.assertIn("at 200,000 steps, difference -5 to -5", line)

    def test_what_is_undecided_says_how_many_seeds_would_decide_it(self):
        # Means 2 and 1.5, variances 1: half width 2.000 sqrt(2 / 31) = 0.508 with 31 seeds each (60 degrees of freedom), and 0.4997 with 32.
        listed = [self.leave("a/one", [[0, 1], [0, 2], [0, 3]]), self.leave("a/two", [[0, 0.5], [0, 1.5], [0, 2.5]])]
        found = self.judged("J", "more", listed)
        self.assertEqual((found.verdict, found.needed, found.then), ("undecided", 32, "holds"))
        self.assertTrue(found.line.endswith("undecided; a second look at 32 seeds would decide it"), found.line)
        against = self.judged("J", "less", listed)
        self.assertEqual((against.needed, against.then), (32, "does not hold"))
        # The difference is more than a quarter of 1.5: with enough seeds they are not alike. Equal means are never more than each other.
        later = self.judged("J", "alike", listed)
        self.assertGreater(later.needed, 32)
        listed.append(self.leave("a/three", [[0, 0], [0, 2], [0, 4]]))
        never = self.judged("J", "more", [listed[0], listed[2]])
        # One comparison that does not hold decides a claim; for "holds" all of them are needed.
        self.assertEqual([claims.needed(counted) for counted in ([found], [found, never], [found, never, against], [never, later])],
                         [32, math.inf, 32, later.needed])

    def test_groups_can_be_compared_at_the_end_of_their_own_trainings(self):
        # One is evaluated at 0 and 300,000 steps, two at 0, 300,000 and 600,000.
        listed = [self.leave("a/one", [[0, 8], [0, 9], [0, 10]]), self.leave("a/two", [[0, 1, 20], [0, 2, 21], [0, 3, 22]], steps=600_000)]
        self.assertEqual(self.judged("J", "less", listed)[0], "does not hold")
        self.assertEqual(self.judged("J", "less", listed, claims.ENDS), (
            "holds",
            "J of a/one less than a/two: 9 (3 seeds) and 21 (3 seeds) at 300,000 and 600,000 steps, difference -14.3 to -9.73: holds",
            "300,000 and 600,000", None, None))

    def test_training_cost_adds_the_episodes_up_to_the_compared_steps(self):
        listed = [self.leave("a/one", [[0, 0]] * 3), self.leave("a/two", [[0, 0, 0]] * 3, steps=600_000)]
        for entry, cost in zip(listed, (4, 1)):
            with open(os.path.join(self.results, *entry.name.split("/"), "episodes.csv"), "w", encoding="utf-8") as file:
                file.write("member,episodes,env_steps,length,sum_cost\n")
                for member in range(3):
                    file.writelines(f"{member},1,{end},100000,{cost + member}\n" for end in (100_000, 300_000, 500_000))
        # Two of three episodes end by 300,000 steps: 8, 10, 12 and 2, 4, 6.
        self.assertIn("training cost of a/one more than a/two: 10 (3 seeds) and 4 (3 seeds) at 300,000 steps",
                      self.judged("training cost", "more", listed)[1])

    def test_costs_of_training_are_compared_in_whole_and_after_the_first_steps(self):
        listed = [self.leave(f"air_hockey/{name}", [[0, 0]] * 3) for name in ("datacom", "sac")]
        for entry, late in zip(listed, (2, 8)):
            with open(os.path.join(self.results, *entry.name.split("/"), "episodes.csv"), "w", encoding="utf-8") as file:
                file.write("member,episodes,env_steps,length,sum_cost\n" + "".join(
                    f"{member},1,100000,9,{4 + 9 * member}\n{member},1,300000,9,{late}\n" for member in range(3)))
        headings, lines = claims.training_costs(listed, self.results)
        self.assertEqual(headings[:4], ["task", "steps", "SAC", "LagSAC"])
        # In whole 6, 15, 24 and 12, 21, 30; after 100,000 steps 2 and 8.
        self.assertEqual(lines[1][:4], ["air_hockey", "after 100,000", "4.0: more", "-"])
        self.assertTrue(lines[0][2].startswith("1.4: undecided, "), lines)
        # A seed that is added for a claim changes neither quotient nor verdict.
        self.leave("air_hockey/datacom+3-3", [[0, 0]])
        with open(os.path.join(self.results, "air_hockey", "datacom+3-3", "episodes.csv"), "w", encoding="utf-8") as file:
            file.write("member,episodes,env_steps,length,sum_cost\n0,1,300000,9,1000\n")
        self.assertEqual(claims.training_costs([listed[0]._replace(seeds="0-2,3-3"), listed[1]], self.results)[1], lines)

    def test_the_second_look_is_at_the_planned_seeds_of_both_groups(self):
        one = self.leave("a/one", [[0, 3], [0, 4], [0, 5]])
        two = self.leave("a/two", [[0, 1], [0, 2], [0, 3], [0, 2], [0, 2]])
        listed = [one._replace(seeds="0-2,3-4"), two._replace(seeds="0-4,5-6")]
        comparison, = claims.compare("J", "alike", "a/one", "a/two")

        def judged(planned=5):
            records = claims.Records(listed, self.results)
            return claims.judged(comparison, records, planned=planned).line, records.looks(comparison, planned)
        before = judged()
        self.assertEqual(before[1], [(3, 5)])
        self.leave("a/two+5-6", [[0, 90], [0, 90]])
        self.assertEqual(judged(), before)  # the first group has not its planned seeds yet
        self.leave("a/one+3-4", [[0, 4], [0, 4]])
        self.assertEqual(judged(planned=None), before)  # seeds that another claim has added
        line, looks = judged()
        self.assertEqual(looks, [(3, 5), (5, 5)])  # and never more than the planned ones
        self.assertIn("4 (5 seeds) and 2 (5 seeds)", line)
        self.assertTrue(line.endswith(": does not hold"), line)

    def test_what_the_first_seeds_decide_stays_decided(self):
        one = self.leave("a/one", [[0, 8], [0, 9], [0, 10]])
        two = self.leave("a/two", [[0, 1], [0, 2], [0, 3]])
        self.leave("a/one+3-4", [[0, 0], [0, 0]])
        self.leave("a/two+3-4", [[0, 20], [0, 20]])
        listed = [one._replace(seeds="0-2,3-4"), two._replace(seeds="0-2,3-4")]
        comparison, = claims.compare("J", "more", "a/one", "a/two")
        found = claims.judged(comparison, claims.Records(listed, self.results), planned=5)
        self.assertEqual(found.verdict, "holds")
        self.assertIn("9 (3 seeds) and 2 (3 seeds)", found.line)

    def test_without_complete_records_or_with_two_seeds_nothing_is_decided(self):
        listed = [self.leave("a/one", [[0, 8], [0, 9]]), self.leave("a/two", [[0, 1], [0, 2], [0, 3]])]
        self.assertEqual(self.judged("J", "more", listed)[0], "undecided")
        listed[1] = listed[1]._replace(steps=400_000)
        self.assertEqual(self.judged("J", "more", listed), ("no records", "J of a/one more than a/two: no complete records of a/two", "-", None, None))
        self.assertEqual(self.judged("gain", "more", [listed[0], listed[0]])[0], "no records")

    def test_a_group_of_a_sweep_is_judged_while_another_one_is_still_trained(self):
        for index, (label, steps) in enumerate((("low", 300_000), ("high", 300_000), ("later", 200_000))):
            self.leave(f"a/swept/{index}", [[0, 4 * index + seed] for seed in range(3)], steps)
            path = os.path.join(self.results, "a", "swept", str(index), "experiment.textproto")
            with open(path, "w", encoding="utf-8") as file:
                file.write('task: "a"\n' + f'members {{\n  label: "{label}"\n}}\n' * 3)
        with open(os.path.join(self.results, "a", "swept", "populations.txt"), "w", encoding="utf-8") as file:
            file.write("0\n1\n2\n3\n")
        records = claims.Records([Entry("sweep", "a/swept", "0-2", 300_000, "Swept")], self.results)
        comparison, = claims.compare("J", "more", "a/swept: high", "a/swept: low")
        self.assertEqual(claims.judged(comparison, records)[1],
                         "J of a/swept (high) more than a/swept (low): 5 (3 seeds) and 1 (3 seeds) at 300,000 steps, difference 1.73 to 6.27: holds")
        comparison, = claims.compare("J", "more", "a/swept: later", "a/swept: never")
        self.assertEqual(claims.judged(comparison, records)[1],
                         "J of a/swept (later) more than a/swept (never): no complete records of a/swept (later), a/swept (never)")

    def test_the_gain_of_the_adjusted_region_is_that_of_the_played_episodes(self):
        listed = [self.leave(name, [[0, 1]] * 3) for name in ("a/one", "a/two")]
        for entry, gains in zip(listed, ((4, 5, 6), (1, 2, 3))):
            with open(os.path.join(self.results, *entry.name.split("/"), "regions.csv"), "w", encoding="utf-8") as file:
                file.write("region,member,discounted_return,max_violation,sum_cost\n")
                for member, gain in enumerate(gains):
                    file.write(f"original,{member},10,0.5,3\noriginal,{member},20,0.7,5\nadjusted,{member},{15 + gain},0.2,1.5\n")
        self.assertIn("gain of a/one more than a/two: 5 (3 seeds) and 2 (3 seeds)", self.judged("gain", "more", listed)[1])
        self.assertIn("relief of a/one alike to a/two: 0.4 (3 seeds) and 0.4 (3 seeds)", self.judged("relief", "alike", listed)[1])
        self.assertIn("cost relief of a/one alike to a/two: 2.5 (3 seeds) and 2.5 (3 seeds)", self.judged("cost relief", "alike", listed)[1])

    def test_the_page_has_a_row_for_each_claim_and_the_rule_of_the_code(self):
        found = claims.judge_all([self.leave("cartpole/rcpo", [[0, 30], [0, 31], [0, 32]]),
                                  self.leave("cartpole/datacom", [[0, 20], [0, 21], [0, 22]])], self.results)
        page = claims.page(found)
        self.assertIn("**1 holds, 1 does not hold, 0 undecided, 0 not decidable with 25 seeds, "
                      f"{len(claims.CLAIMS) - 2} no records**, of {len(claims.CLAIMS)} claims.", page)
        self.assertIn("| RCPO reaches a higher return than D-ATACOM. | CartPole, section 4 | 300,000 | holds | - |", page)
        self.assertIn("31 (3 seeds) and 21 (3 seeds)", claims.arithmetic(found))
        self.assertEqual([claims.verdict_of([claims.Judgement("undecided", "", needed=seeds)]) for seeds in (None, 25, 26, math.inf)],
                         ["undecided"] * 2 + ["not decidable with 25 seeds"] * 2)
        with open(os.path.join(SOURCE, "docs/claims.md"), encoding="utf-8") as file:
            head = " ".join(file.read().split("<!--")[0].split())
        for fact in (f"{claims.ALIKE * 100:.0f} % of", f"last {WINDOW:,} steps before", f"The paper has {claims.MOST}", f"than {claims.FEWEST} seeds"):
            self.assertIn(fact, head)


class Shipped(unittest.TestCase):
    def test_every_group_of_a_claim_is_an_entry_and_a_point_of_its_sweep(self):
        listed = {entry.name: entry for entry in entries()}
        for claim in claims.CLAIMS:
            for comparison in claim.comparisons:
                self.assertIn(comparison.quantity, claims.QUANTITIES)
                for name, label in (comparison.first, comparison.second):
                    self.assertIn(name, listed, claim.name)
                    self.assertEqual(bool(label), listed[name].verb == "sweep", claim.name)
                    if label:
                        with open(os.path.join(SOURCE, "deploy", "sweeps", name + ".textproto"), encoding="utf-8") as file:
                            text = file.read()
                        axis = re.search(r'^  name: "(.*)"$', text, re.M)[1]
                        self.assertIn(label, [f"{axis} {point}" for point in re.findall(r'points \{ label: "(.*?)"', text)], claim.name)

    def test_the_members_of_a_sweep_are_its_points_times_its_seeds(self):
        for name, count in (("air_hockey/fixed_deltas", 18), ("cartpole/cost_budgets", 12), ("air_hockey/mismatch", 15)):
            entry = next(entry for entry in entries() if entry.name == name)
            self.assertEqual(training_times.TrainingTimes.members(entry), count)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
