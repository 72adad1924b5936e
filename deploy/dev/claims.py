"""Sentences of the paper's experiments that compare methods or settings, and what the records say about each.

A claim is a list of comparisons of two groups of seeds. deploy/dev/results_tables writes the verdicts to docs/claims.md.
"""
import collections
import functools
import math
import re
import statistics

from intervals import deciding_seeds, sample, welch
from results import (by_member, collisions, evaluated, folders, members, parts, planned_looks, read, result_at, rows, seed_count, share_collided,
                     steps_made)

SEEDS = 15          # the most to which `reproduce --until-decided` adds seeds
MOST_NEEDED = 999   # seeds up to which it is computed how many would decide
MOST = 25           # seeds of the paper
UNDECIDABLE = f"not decidable with {MOST} seeds"
ALIKE = 0.25        # two groups are alike if their means differ by at most this share of the second one, which must have a natural zero
FEWEST = 3          # seeds of a group; fewer decide nothing
ENDS = None         # steps of a comparison: each group at the end of its own training

# What is compared, and its words. EVALUATED and PLAYED name the columns that some are read from.
QUANTITIES = {
    "J": "discounted return at the end",
    "mean J": "mean discounted return over the training, a measure of its speed",
    "cost": "cost of an evaluation episode at the end",
    "violation": "largest violation of an evaluation episode at the end",
    "success": "share of the evaluation episodes at the end that reach the goal",
    "training cost": "cost of all training episodes",
    "late cost": "cost of the training episodes after the first 100,000 steps",
    "collisions": "share of the last training episodes that end in a collision",
    "gain": "discounted return in the adjusted region less that in the original one, last policies",
    "relief": "largest violation in the original region less that in the adjusted one, last policies",
    "cost relief": "cost of an episode in the original region less that in the adjusted one, last policies",
}

EVALUATED = {"J": "eval_discounted_return", "cost": "eval_sum_cost", "violation": "eval_max_violation", "success": "eval_success_rate"}
COSTS = {"training cost": 0, "late cost": 100_000}  # of the training episodes after so many steps
PLAYED = {"gain": ("discounted_return", 1), "relief": ("max_violation", -1), "cost relief": ("sum_cost", -1)}  # column of regions.csv

# first, second: (entry, label of a sweep's setting or ""). relation: "more", "less" or "alike", of the first to the second.
# steps: the most at which two groups are compared, or ENDS.
Comparison = collections.namedtuple("Comparison", "quantity first relation second steps")
Claim = collections.namedtuple("Claim", "name task place sentence comparisons")
# line: the arithmetic; steps: at which the groups were compared. Of an undecided one, as its groups are at its last look: needed: the seeds that
# would decide it, inf if more than MOST_NEEDED, None if the groups have fewer than FEWEST; then: the verdict that they would give.
Judgement = collections.namedtuple("Judgement", "verdict line steps needed then", defaults=("-", None, None))
Trained = collections.namedtuple("Trained", "progress episodes collided copy index")  # a member; collided: see results.collisions


def compare(quantity, relation, first, *others, steps=1_000_000):
    """One comparison of `first` with each of the others. A group is "entry" or "entry: label"."""
    return [Comparison(quantity, split(first), relation, split(other), steps) for other in others]


def split(group):
    entry, _, label = group.partition(": ")
    return entry, label


def of(task, *names):
    return [f"{task}/{name}" for name in names]


def claim(name, task, place, sentence, *comparisons):
    return Claim(name, task, place, sentence, [each for part in comparisons for each in part])


NAVIGATION = of("navigation", "sac", "lag_sac", "wcsac", "ppo_lag", "rcpo")
NAMES = {"sac": "SAC", "lag_sac": "LagSAC", "wcsac": "WCSAC", "ppo_lag": "PPOLag", "rcpo": "RCPO", "cbf_sac": "CBF-SAC", "safe_layer_td3": "SafeLayerTD3"}
SAFE_ON_CARTPOLE = of("cartpole", "lag_sac", "wcsac", "ppo_lag", "rcpo")
DELTAS, RISKS, MISMATCH, BUDGETS = "air_hockey/fixed_deltas", "air_hockey/accepted_risks", "air_hockey/mismatch", "cartpole/cost_budgets"
CLAIMS = [
    claim("cartpole-speed", "CartPole", "section 4", "D-ATACOM learns fastest of the safe methods.",
          compare("mean J", "more", "cartpole/datacom", *SAFE_ON_CARTPOLE)),
    claim("cartpole-sac-return", "CartPole", "section 4", "SAC reaches a higher return than D-ATACOM.",
          compare("J", "more", "cartpole/sac", "cartpole/datacom")),
    claim("cartpole-sac-cost", "CartPole", "section 4", "SAC violates more than D-ATACOM.",
          compare("cost", "more", "cartpole/sac", "cartpole/datacom")),
    claim("cartpole-rcpo-return", "CartPole", "section 4", "RCPO reaches a higher return than D-ATACOM.",
          compare("J", "more", "cartpole/rcpo", "cartpole/datacom", steps=ENDS)),
    claim("cartpole-rcpo-cost", "CartPole", "section 4", "RCPO violates as much as SAC.",
          compare("cost", "alike", "cartpole/rcpo", "cartpole/sac", steps=ENDS),
          compare("violation", "alike", "cartpole/rcpo", "cartpole/sac", steps=ENDS)),
    claim("cartpole-budgets", "CartPole", "appendix E.2", "With budgets of 0.1 and 5 D-ATACOM's return is below that with 40.",
          *(compare("J", "less", f"{BUDGETS}: cost budget {budget}", f"{BUDGETS}: cost budget 40") for budget in ("0.1", "5"))),
    *(claim(f"cartpole-wcsac-budget-{budget}", "CartPole", "appendix E.2", f"WCSAC's return with a budget of {budget} is like that with 40.",
            compare("J", "alike", f"cartpole/wcsac_cost_budgets: cost budget {budget}", "cartpole/wcsac_cost_budgets: cost budget 40"))
      for budget in ("0.1", "5")),
    claim("navigation-return", "Navigation", "section 4", "D-ATACOM has the best return.",
          compare("J", "more", "navigation/datacom", *NAVIGATION)),
    claim("navigation-cost", "Navigation", "section 4", "D-ATACOM has the least cost.",
          compare("cost", "less", "navigation/datacom", *NAVIGATION)),
    claim("navigation-evades", "Navigation", "section 4", "Only D-ATACOM evades: it collides less than every other method.",
          compare("collisions", "less", "navigation/datacom", *NAVIGATION)),
    claim("navigation-others", "Navigation", "section 4", "The other methods behave alike.",
          *(compare(quantity, "alike", other, "navigation/lag_sac") for quantity in ("cost", "collisions")  # J has no natural zero here
            for other in NAVIGATION if other != "navigation/lag_sac")),
    claim("navigation-iqn-return", "Navigation", "appendix C", "The Gaussian FVF has a higher return than the one of quantiles (IQN).",
          compare("J", "more", "navigation/datacom", "navigation/iqn_datacom")),
    claim("navigation-iqn-cost", "Navigation", "appendix C", "The Gaussian FVF has less cost than the one of quantiles (IQN).",
          compare("cost", "less", "navigation/datacom", "navigation/iqn_datacom")),
    claim("navigation-risk", "Navigation", "appendix E.3", "With a fixed threshold a lower accepted risk is safer.",
          compare("cost", "less", "navigation/accepted_risks: accepted risk 0.1", "navigation/accepted_risks: accepted risk 0.9")),
    claim("hockey-fi", "Air hockey", "section 4", "D-ATACOM approaches the return of ATACOM with a forward invariant constraint.",
          compare("J", "alike", "air_hockey/datacom", "air_hockey/atacom_fi")),
    claim("hockey-nfi", "Air hockey", "section 4", "ATACOM without forward invariance is like SAC, in return and cost.",
          *(compare(quantity, "alike", "air_hockey/atacom_nfi", "air_hockey/sac") for quantity in ("J", "cost"))),
    *(claim(f"hockey-safer-{name}", "Air hockey", "section 4", f"D-ATACOM is safer than {NAMES[name]}.",
            compare("violation", "less", "air_hockey/datacom", f"air_hockey/{name}")) for name in list(NAMES)[:5]),
    claim("hockey-slower", "Air hockey", "section 4", "D-ATACOM learns more slowly than LagSAC and WCSAC.",
          compare("mean J", "less", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    claim("hockey-final", "Air hockey", "section 4 and appendix E.4", "D-ATACOM's last return is below LagSAC's and WCSAC's.",
          compare("J", "less", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    *(claim(f"hockey-on-policy-{word}", "Air hockey", "appendix D.3", f"PPOLag and RCPO {words} LagSAC and WCSAC, in twice the steps.",
            *(compare(quantity, "less", f"air_hockey/{name}", *of("air_hockey", "lag_sac", "wcsac"), steps=ENDS) for name in ("ppo_lag", "rcpo")))
      for word, quantity, words in (("safer", "violation", "are safer than"), ("return", "J", "have a lower return than"))),
    claim("hockey-adjusted-return", "Air hockey", "appendix E.4", "D-ATACOM's return gains more from the adjusted region than the others'.",
          compare("gain", "more", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    *(claim(f"hockey-adjusted-{name}", "Air hockey", "appendix E.4", f"{NAMES[name]}'s violations and costs fall more in it than D-ATACOM's.",
            *(compare(quantity, "less", "air_hockey/datacom", f"air_hockey/{name}") for quantity in ("relief", "cost relief")))
      for name in ("lag_sac", "wcsac")),
    claim("hockey-small-deltas", "Air hockey", "appendix E.1", "Small fixed thresholds learn more slowly than the adaptive one.",
          *(compare("mean J", "less", f"{DELTAS}: delta {delta}", f"{DELTAS}: delta learned") for delta in ("0.1", "0.3", "0.5"))),
    claim("hockey-small-deltas-cost", "Air hockey", "appendix E.1", "Small fixed thresholds become safe more slowly: training costs more.",
          *(compare("training cost", "more", f"{DELTAS}: delta {delta}", f"{DELTAS}: delta learned") for delta in ("0.1", "0.3", "0.5"))),
    claim("hockey-large-deltas", "Air hockey", "appendix E.1", "Large fixed thresholds violate more than the adaptive one.",
          *(compare("cost", "more", f"{DELTAS}: delta {delta}", f"{DELTAS}: delta learned") for delta in ("1", "3"))),
    claim("hockey-risk", "Air hockey", "appendix E.3",
          "With a learned threshold the accepted risk changes neither cost nor largest violation.",
          *(compare(quantity, "alike", f"{RISKS}: accepted risk 0.1", f"{RISKS}: accepted risk 0.9")
            for quantity in ("cost", "violation"))),
    claim("hockey-risk-return", "Air hockey", "appendix E.3", "With a learned threshold a lower accepted risk learns more slowly.",
          compare("mean J", "less", f"{RISKS}: accepted risk 0.1", f"{RISKS}: accepted risk 0.9")),
    claim("hockey-mismatch-return", "Air hockey", "appendix E.5", "Model mismatch lowers the return.",
          compare("J", "less", f"{MISMATCH}: sigma 0.8", f"{MISMATCH}: sigma 0")),
    claim("hockey-mismatch-cost", "Air hockey", "appendix E.5", "Model mismatch does not change the cost.",
          compare("cost", "alike", f"{MISMATCH}: sigma 0.8", f"{MISMATCH}: sigma 0")),
    claim("hockey-models-return", "Air hockey", "appendix E.6", "CBF-SAC and SafeLayerTD3 have about D-ATACOM's return.",
          *(compare("J", "alike", f"air_hockey/{name}", "air_hockey/datacom") for name in ("cbf_sac", "safe_layer_td3"))),
    claim("hockey-models-slower", "Air hockey", "appendix E.6", "CBF-SAC learns more slowly than D-ATACOM.",
          compare("mean J", "less", "air_hockey/cbf_sac", "air_hockey/datacom")),
    *(claim(f"hockey-{name}-cost", "Air hockey", "appendix E.6", f"{NAMES[name]} is less safe than D-ATACOM.",
            compare("violation", "more", f"air_hockey/{name}", "air_hockey/datacom")) for name in ("cbf_sac", "safe_layer_td3")),
    claim("hockey-safe-loop", "Air hockey", "appendix E.6", "SafeLOOP barely moves: its return is below D-ATACOM's after as many steps.",
          compare("J", "less", "air_hockey/safe_loop", "air_hockey/datacom")),
]


# Not the paper's: what a training of each baseline that is told nothing costs beside one of D-ATACOM.
COMPARED = {"air_hockey": tuple(NAMES), **dict.fromkeys(("cartpole", "navigation"), tuple(NAMES)[:5])}


class Records:
    """The values of quantities from the records below a results' folder."""

    def __init__(self, listed, results):
        self.entries = {entry.name: entry for entry in listed}
        self.results = results
        self.planned = planned_looks(results)
        self.known = {}
        self.first = {}  # by group: the seeds of its first part

    def trained(self, group):
        """The members of a group: those of the parts of its entry that are trained, up to the first that is not.

        None unless the first part has every seed and all steps. Other groups of the same sweep may be missing.
        """
        if group not in self.known:
            found = []
            for part in parts(self.entries[group[0]]) if group[0] in self.entries else []:
                copies = [copy for copy in folders(part, self.results) if steps_made(copy) >= part.steps]
                own = [member for copy in copies for member in self.members(copy, group[1])]
                if len(own) != seed_count(part.seeds):
                    break
                found += own
                self.first.setdefault(group, len(found))
            self.known[group] = found or None
        return self.known[group]

    @staticmethod
    def members(copy, label):
        experiment, episodes = read(copy, "experiment.textproto"), by_member(rows(read(copy, "episodes.csv")))
        task = re.search(r'^task: "(.*)"$', experiment, re.M)
        for index, member in enumerate(members(copy)):
            if label not in ("", member.label):
                continue
            own = episodes.get(index, [])
            ended = collisions(task[1] if task else "", experiment, member.rows, own)
            yield Trained(member.rows, own, ended, copy, index)

    def steps(self, comparison):
        """The steps of the first and of the second group at which they are compared."""
        ends = [min(int(member.progress[-1]["env_steps"]) for member in self.trained(group))
                for group in (comparison.first, comparison.second)]
        return ends if comparison.steps is ENDS else [min(comparison.steps, *ends)] * 2

    def looks(self, comparison, planned=None):
        """[(seeds of the first group, of the second)] of each look: at the first seeds, and at the planned ones once both groups have them. Seeds that
        were added for another claim never change a look."""
        groups = (comparison.first, comparison.second)
        second = planned and all(len(self.trained(group)) >= planned for group in groups)
        return [tuple(self.first[group] for group in groups), *[(planned, planned)] * bool(second)]

    def values(self, group, quantity, steps):
        return [self.value(member, quantity, steps) for member in self.trained(group)]

    def value(self, member, quantity, steps):
        found = evaluated(member.progress)
        if quantity == "mean J":
            return mean([row for row in found if int(row["env_steps"]) <= steps], "eval_discounted_return")
        if quantity in COSTS:
            own = [float(row["sum_cost"]) for row in member.episodes if COSTS[quantity] < int(row["env_steps"]) <= steps]
            return sum(own) if member.episodes else None
        if quantity in PLAYED:
            original, adjusted = (self.played(member, name) for name in ("original", "adjusted"))
            column, sign = PLAYED[quantity]
            return sign * (mean(adjusted, column) - mean(original, column)) if original and adjusted else None
        if quantity == "collisions":
            return share_collided(member.collided, steps)
        return result_at(found, EVALUATED[quantity], steps)

    @staticmethod
    def played(member, region):
        """The last policy's episodes with the puck in a region, which `reproduce` plays after the training."""
        found = rows(read(member.copy, "regions.csv"))
        return [row for row in found if row["region"] == region and int(row["member"]) == member.index]


def mean(found, column):
    return sum(float(row[column]) for row in found) / len(found)


def short(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def title(group):
    return group[0] + (f" ({group[1]})" if group[1] else "")


def differences(relation, first, second, level):
    """[(difference, half width)] of two samples that are all above 0 if the relation is true."""
    if relation != "alike":
        difference, half = welch(first, second, level)
        return [(difference if relation == "more" else -difference, half)]
    sign = math.copysign(1, second.mean)
    above, below = (welch(first, second, level, share) for share in (1 - ALIKE, 1 + ALIKE))
    return [(sign * above[0], above[1]), (-sign * below[0], below[1])]


def judge(relation, first, second, level=0.95, comparisons=1):
    """"holds", "does not hold" or "undecided" of two samples, by the rule of the page, for one of a claim's comparisons."""
    if all(difference - half > 0 for difference, half in differences(relation, first, second, level)):
        return "holds"
    refuted = any(difference + half < 0 for difference, half in differences(relation, first, second, 1 - (1 - level) / comparisons))
    return "does not hold" if refuted else "undecided"


def judged(comparison, records, comparisons=1, planned=None):
    """The judgement of the first look that decides, or of the last one, for one of a claim's comparisons. planned: seeds of the second look."""
    missing = [group for group in (comparison.first, comparison.second) if records.trained(group) is None]
    words = f"{comparison.relation} {'than' if comparison.relation != 'alike' else 'to'}"
    pair = f"{comparison.quantity} of {title(comparison.first)} {words} {title(comparison.second)}"
    if missing:
        return Judgement("no records", f"{pair}: no complete records of {', '.join(map(title, missing))}")
    steps = records.steps(comparison)
    at = " and ".join(f"{own:,}" for own in dict.fromkeys(steps))
    everything = [records.values(group, comparison.quantity, own) for group, own in zip((comparison.first, comparison.second), steps)]
    for first, second in records.looks(comparison, planned):
        groups = [values[:count] for values, count in zip(everything, (first, second))]
        if any(None in values for values in groups):
            return Judgement("no records", f"{pair}: a seed's evaluation is not there yet")
        groups = [sample(values) for values in groups]
        figures = " and ".join(f"{short(own.mean)} ({own.count} seeds)" for own in groups)
        if min(own.count for own in groups) < FEWEST:
            found = Judgement("undecided", f"{pair}: {figures} at {at} steps; fewer than {FEWEST} seeds decide nothing", at)
            continue
        difference, half = welch(*groups)
        verdict = judge(comparison.relation, *groups, comparisons=comparisons)
        interval = f"{short(difference - half)} to {short(difference + half)}"
        found = Judgement(verdict, f"{pair}: {figures} at {at} steps, difference {interval}: {verdict}", at)
        if verdict != "undecided":
            return found
        count, then = deciding_seeds(*groups, functools.partial(judge, comparison.relation, comparisons=comparisons), MOST_NEEDED)
        line = f"{found.line}; a second look at {count or f'more than {MOST_NEEDED}'} seeds would decide it"
        found = found._replace(line=line, needed=count or math.inf, then=then)
    return found


def joined(verdicts):
    """The verdict of a claim from those of its comparisons."""
    for worst in ("does not hold", "no records", "undecided"):
        if worst in verdicts:
            return worst
    return "holds"


def verdict_of(counted):
    """The verdict of a claim as the page has it. The paper has MOST seeds: what needs more is as undecidable there."""
    found = joined([one.verdict for one in counted])
    return UNDECIDABLE if found == "undecided" and (needed(counted) or 0) > MOST else found


def judge_claim(each, records):
    return [judged(comparison, records, len(each.comparisons), records.planned.get(each.name)) for comparison in each.comparisons]


def judge_all(listed, results):
    """[(claim, verdict, judgements of its comparisons)]"""
    records = Records(listed, results)
    found = [(each, judge_claim(each, records)) for each in CLAIMS]
    return [(each, verdict_of(counted), counted) for each, counted in found]


def needed(counted):
    """The seeds of each group that would decide an undecided claim, as Judgement.needed. One comparison that does not hold decides it."""
    refuting = [one.needed for one in counted if one.then == "does not hold"]
    others = [one.needed for one in counted if one.verdict == "undecided"]
    return min(refuting) if refuting else None if None in others else max(others)


def seeds_word(seeds):
    return "-" if seeds is None else f"> {MOST_NEEDED}" if seeds > MOST_NEEDED else str(seeds)


def page(found):
    """What is between the markers of the page: the verdicts."""
    counts = collections.Counter(verdict for _, verdict, _ in found)
    order = ("holds", "does not hold", "undecided", UNDECIDABLE, "no records")
    lines = ["", "**" + ", ".join(f"{counts[verdict]} {verdict}" for verdict in order) + f"**, of {len(found)} claims.", "",
             "| claim | place | at steps | verdict | seeds needed |", "|---|---|---:|---|---:|"]
    for each, verdict, counted in found:
        steps = "; ".join(dict.fromkeys(one.steps for one in counted if one.steps != "-")) or "-"
        seeds = needed(counted) if verdict in ("undecided", UNDECIDABLE) else None
        lines.append(f"| {each.sentence} | {each.task}, {each.place} | {steps} | {verdict} | {seeds_word(seeds)} |")
    return "\n".join(lines) + "\n\n"


def times_as_much(comparison, records):
    """How many times D-ATACOM's cost the other method's is, and whether the seeds decide it; "-" without records or without a cost."""
    one = judged(comparison, records)
    if one.verdict == "no records":
        return "-"
    groups, steps, (counts,) = (comparison.first, comparison.second), records.steps(comparison), records.looks(comparison)
    ours, other = (statistics.mean(records.values(group, comparison.quantity, own)[:count]) for group, own, count in zip(groups, steps, counts))
    if ours == 0:
        return "-"
    word = {"holds": "more", "does not hold": "less"}.get(one.verdict) or f"undecided, {seeds_word(one.needed)} seeds"
    return f"{other / ours:,.{int(other < 9.95 * ours)}f}: {word}"


def training_costs(listed, results):
    """The rows of a table: what a training of the other methods costs, D-ATACOM's being 1, at equal steps."""
    records, lines = Records(listed, results), []
    for task, others in COMPARED.items():
        for quantity, words in (("training cost", "all"), ("late cost", f"after {COSTS['late cost']:,}")):
            comparisons = compare(quantity, "less", f"{task}/datacom", *of(task, *others))
            cells = [times_as_much(each, records) for each in comparisons] if f"{task}/datacom" in records.entries else []
            lines.append([task, words, *cells, *["-"] * (len(COMPARED["air_hockey"]) - len(cells))])
    return ["task", "steps", *(NAMES[other] for other in COMPARED["air_hockey"])], lines


def arithmetic(found):
    """Every comparison of every claim, with its figures."""
    lines = []
    for each, verdict, counted in found:
        lines += [f"{each.name}: {each.sentence} {verdict.capitalize()}.", *("  " + one.line for one in counted)]
        lines += [f"  {quantity}: {QUANTITIES[quantity]}" for quantity in dict.fromkeys(one.quantity for one in each.comparisons)]
    return "\n".join(lines)
# SPDX-License-Identifier: Apache-2.0
