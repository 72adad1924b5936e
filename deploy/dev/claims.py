"""The sentences of the paper's experiments that can be true or false, and what the records say about each.

A claim is a list of comparisons of two groups of seeds. deploy/dev/results_tables writes the verdicts to deploy/results/CLAIMS.md.
Standard library only.
"""
import collections
import os
import re
import textwrap

from results import collisions, folders, members, read, rows, steps_made
from student_t import welch
from training_times import seed_count

PAGE = os.path.basename("deploy/results/CLAIMS.md")
WINDOW = 100_000    # environment steps before the end over which an evaluation is averaged
ALIKE = 0.25        # two groups are alike if their means differ by at most this share of the second one
WIDTH = 140         # of the page's lines
FEWEST = 3          # seeds of a group; fewer decide nothing

# What is compared: its words, and the value of a member up to a number of steps.
QUANTITIES = {
    "J": "discounted return at the end",
    "mean J": "mean discounted return over the training, a measure of its speed",
    "cost": "cost of an evaluation episode at the end",
    "violation": "largest violation of an evaluation episode at the end",
    "collisions": "share of the last training episodes that end in a collision",
    "gain": "discounted return in the adjusted region less that in the original one, last policies",
    "relief": "largest violation in the original region less that in the adjusted one, last policies",
}

# first, second: (entry, label of a sweep's setting or ""). relation: "more", "less" or "alike", of the first to the second.
Comparison = collections.namedtuple("Comparison", "quantity first relation second")
Claim = collections.namedtuple("Claim", "name task place sentence comparisons steps")


def compare(quantity, relation, first, *others):
    """One comparison of `first` with each of the others. A group is "entry" or "entry: label"."""
    return [Comparison(quantity, split(first), relation, split(other)) for other in others]


def split(group):
    entry, _, label = group.partition(": ")
    return entry, label


def of(task, *names):
    return [f"{task}/{name}" for name in names]


def claim(name, task, place, sentence, *comparisons, steps=1_000_000):
    return Claim(name, task, place, sentence, [each for part in comparisons for each in part], steps)


NAVIGATION = of("navigation", "sac", "lag_sac", "wcsac", "ppo_lag", "rcpo")
CLAIMS = [
    claim("cartpole-speed", "CartPole", "section 4", "D-ATACOM learns fastest of the safe methods.",
          compare("mean J", "more", "cartpole/datacom", *of("cartpole", "lag_sac", "wcsac", "ppo_lag"))),
    claim("cartpole-sac-return", "CartPole", "section 4", "SAC reaches a higher return than D-ATACOM.",
          compare("J", "more", "cartpole/sac", "cartpole/datacom")),
    claim("cartpole-sac-cost", "CartPole", "section 4", "SAC violates more than D-ATACOM.",
          compare("cost", "more", "cartpole/sac", "cartpole/datacom")),
    claim("cartpole-rcpo-return", "CartPole", "section 4", "RCPO reaches a higher return than D-ATACOM.",
          compare("J", "more", "cartpole/rcpo", "cartpole/datacom")),
    claim("cartpole-rcpo-cost", "CartPole", "section 4", "RCPO violates as much as SAC.",
          compare("cost", "alike", "cartpole/rcpo", "cartpole/sac")),
    claim("cartpole-budgets", "CartPole", "appendix D.2", "Budgets of 0.1 and 5 stall D-ATACOM: its return is below that of 40.",
          compare("J", "less", "cartpole/cost_budgets: cost budget 0.1", "cartpole/cost_budgets: cost budget 40"),
          compare("J", "less", "cartpole/cost_budgets: cost budget 5", "cartpole/cost_budgets: cost budget 40")),
    claim("cartpole-wcsac-budgets", "CartPole", "appendix D.2", "WCSAC's return depends little on the budget.",
          *(compare("J", "alike", f"cartpole/wcsac_cost_budgets: cost budget {budget}", "cartpole/wcsac_cost_budgets: cost budget 40")
            for budget in ("0.1", "5"))),
    claim("navigation-return", "Navigation", "section 4", "D-ATACOM has the best return.",
          compare("J", "more", "navigation/datacom", *NAVIGATION)),
    claim("navigation-cost", "Navigation", "section 4", "D-ATACOM has the least cost.",
          compare("cost", "less", "navigation/datacom", *NAVIGATION)),
    claim("navigation-evades", "Navigation", "section 4", "Only D-ATACOM evades: it collides less than every other method.",
          compare("collisions", "less", "navigation/datacom", *NAVIGATION)),
    claim("navigation-others", "Navigation", "section 4", "The other methods behave alike.",
          *(compare("J", "alike", other, "navigation/lag_sac") for other in NAVIGATION if other != "navigation/lag_sac")),
    claim("navigation-iqn-return", "Navigation", "appendix B", "The Gaussian FVF has a higher return than the one of quantiles (IQN).",
          compare("J", "more", "navigation/datacom", "navigation/iqn_datacom"), steps=300_000),
    claim("navigation-iqn-cost", "Navigation", "appendix B", "The Gaussian FVF has less cost than the one of quantiles (IQN).",
          compare("cost", "less", "navigation/datacom", "navigation/iqn_datacom"), steps=300_000),
    claim("navigation-risk", "Navigation", "appendix D.3", "With a fixed threshold a lower accepted risk is safer.",
          compare("cost", "less", "navigation/accepted_risks: accepted risk 0.1", "navigation/accepted_risks: accepted risk 0.9"),
          steps=300_000),
    claim("hockey-fi", "Air hockey", "section 4", "D-ATACOM approaches the return of ATACOM with a forward invariant constraint.",
          compare("J", "alike", "air_hockey/datacom", "air_hockey/atacom_fi")),
    claim("hockey-nfi", "Air hockey", "section 4", "ATACOM without forward invariance is like SAC, in return and cost.",
          compare("J", "alike", "air_hockey/atacom_nfi", "air_hockey/sac"), compare("cost", "alike", "air_hockey/atacom_nfi", "air_hockey/sac")),
    claim("hockey-safest", "Air hockey", "section 4", "D-ATACOM is safer than SAC, LagSAC and WCSAC.",
          compare("violation", "less", "air_hockey/datacom", *of("air_hockey", "sac", "lag_sac", "wcsac"))),
    claim("hockey-slower", "Air hockey", "section 4", "D-ATACOM learns more slowly than LagSAC and WCSAC.",
          compare("mean J", "less", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    claim("hockey-on-policy", "Air hockey", "figure 5", "PPOLag and RCPO have less cost than D-ATACOM and a lower return, after as many steps.",
          *(compare(quantity, "less", f"air_hockey/{name}", "air_hockey/datacom")
            for name in ("ppo_lag", "rcpo") for quantity in ("cost", "J"))),
    claim("hockey-adjusted-return", "Air hockey", "appendix D.4", "D-ATACOM's return gains more from the adjusted region than the others'.",
          compare("gain", "more", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    claim("hockey-adjusted-violation", "Air hockey", "appendix D.4", "LagSAC's and WCSAC's violations fall more in it than D-ATACOM's.",
          compare("relief", "less", "air_hockey/datacom", *of("air_hockey", "lag_sac", "wcsac"))),
    claim("hockey-small-deltas", "Air hockey", "appendix D.1", "Small fixed thresholds learn more slowly than the adaptive one.",
          *(compare("mean J", "less", f"air_hockey/fixed_deltas: delta {delta}", "air_hockey/fixed_deltas: delta learned")
            for delta in ("0.1", "0.3", "0.5"))),
    claim("hockey-large-deltas", "Air hockey", "appendix D.1", "Large fixed thresholds violate more than the adaptive one.",
          *(compare("cost", "more", f"air_hockey/fixed_deltas: delta {delta}", "air_hockey/fixed_deltas: delta learned")
            for delta in ("1", "3"))),
    claim("hockey-risk", "Air hockey", "appendix D.3", "With a learned threshold the accepted risk does not change the cost.",
          compare("cost", "alike", "air_hockey/accepted_risks: accepted risk 0.1", "air_hockey/accepted_risks: accepted risk 0.9"),
          steps=500_000),
    claim("hockey-mismatch-return", "Air hockey", "appendix D.5", "Model mismatch lowers the return.",
          compare("J", "less", "air_hockey/mismatch: sigma 0.8", "air_hockey/mismatch: sigma 0"), steps=500_000),
    claim("hockey-mismatch-cost", "Air hockey", "appendix D.5", "Model mismatch does not change the cost.",
          compare("cost", "alike", "air_hockey/mismatch: sigma 0.8", "air_hockey/mismatch: sigma 0"), steps=500_000),
    claim("hockey-models-return", "Air hockey", "appendix D.6", "CBF-SAC and SafeLayerTD3 have about D-ATACOM's return.",
          *(compare("J", "alike", f"air_hockey/{name}", "air_hockey/datacom") for name in ("cbf_sac", "safe_layer_td3"))),
    claim("hockey-models-cost", "Air hockey", "appendix D.6", "CBF-SAC and SafeLayerTD3 are less safe than D-ATACOM.",
          *(compare("violation", "more", f"air_hockey/{name}", "air_hockey/datacom") for name in ("cbf_sac", "safe_layer_td3"))),
    claim("hockey-safe-loop", "Air hockey", "appendix D.6", "SafeLOOP barely moves: its return is below D-ATACOM's after as many steps.",
          compare("J", "less", "air_hockey/safe_loop", "air_hockey/datacom"), steps=100_000),
]


class Records:
    """The values of quantities from the records below a results' folder."""

    def __init__(self, listed, results):
        self.entries = {entry.name: entry for entry in listed}
        self.results = results
        self.known = {}

    def trained(self, group):
        """[(member's rows of progress, (end, collided) of its training episodes, (copy, index in it))] of a group.

        None unless every seed of the entry is there with all steps. Other groups of the same sweep may be missing.
        """
        if group not in self.known:
            name, label = group
            entry = self.entries.get(name)
            copies = [copy for copy in folders(entry, self.results) if steps_made(copy) >= entry.steps] if entry else []
            found = [member for copy in copies for member in self.members(copy, label)]
            self.known[group] = found if entry and len(found) == seed_count(entry.seeds) else None
        return self.known[group]

    @staticmethod
    def members(copy, label):
        experiment, episodes = read(copy, "experiment.textproto"), rows(read(copy, "episodes.csv"))
        task = re.search(r'^task: "(.*)"$', experiment, re.M)
        for index, member in enumerate(members(copy)):
            if label not in ("", member.label):
                continue
            own = [row for row in episodes if int(row["member"]) == index]
            ended = collisions(task[1] if task else "", experiment, member.rows, own)
            yield member.rows, ended, (copy, index)

    def steps(self, comparison, most):
        """The steps at which two groups can be compared."""
        found = [self.trained(group) for group in (comparison.first, comparison.second)]
        return min([most, *(int(progress[-1]["env_steps"]) for group in found for progress, _, _ in group)])

    def values(self, group, quantity, steps):
        return [value for member in self.trained(group) if (value := self.value(*member, quantity, steps)) is not None]

    def value(self, progress, ended, place, quantity, steps):
        evaluated = [row for row in progress if int(row["eval_episodes"] or 0) > 0 and int(row["env_steps"]) <= steps]
        late = [row for row in evaluated if int(row["env_steps"]) > steps - WINDOW]
        if quantity == "mean J":
            return mean(evaluated, "eval_discounted_return")
        if quantity in ("gain", "relief"):
            original, adjusted = (self.played(place, name) for name in ("original", "adjusted"))
            if not original or not adjusted:
                return None
            column = "discounted_return" if quantity == "gain" else "max_violation"
            change = mean(adjusted, column) - mean(original, column)
            return change if quantity == "gain" else -change
        if quantity == "collisions":
            late = [collided for end, collided in ended or () if steps - WINDOW < end <= steps]
            return sum(late) / len(late) if late else None
        column = {"J": "eval_discounted_return", "cost": "eval_sum_cost", "violation": "eval_max_violation"}[quantity]
        return mean(late, column) if late else None

    @staticmethod
    def played(place, region):
        """The last policy's episodes with the puck in a region, which `reproduce` plays after the training."""
        copy, index = place
        return [row for row in rows(read(copy, "regions.csv")) if row["region"] == region and int(row["member"]) == index]


def mean(found, column):
    return sum(float(row[column]) for row in found) / len(found)


def short(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def title(group):
    return group[0] + (f" ({group[1]})" if group[1] else "")


def judge(comparison, difference, half, reference):
    """"holds", "does not hold" or "undecided", by the rule on the page."""
    low, high = difference - half, difference + half
    if comparison.relation == "alike":
        margin = ALIKE * abs(reference)
        return "holds" if -margin <= low and high <= margin else "does not hold" if low > margin or high < -margin else "undecided"
    if comparison.relation == "less":
        low, high = -high, -low
    return "holds" if low > 0 else "does not hold" if high < 0 else "undecided"


def judged(comparison, most, records):
    """(verdict, line for the page)."""
    missing = [group for group in (comparison.first, comparison.second) if records.trained(group) is None]
    pair = f"{comparison.quantity} of {title(comparison.first)} {comparison.relation} {'than' if comparison.relation != 'alike' else 'to'} {title(comparison.second)}"
    if missing:
        return "no records", f"{pair}: no complete records of {', '.join(map(title, missing))}"
    steps = records.steps(comparison, most)
    groups = [records.values(group, comparison.quantity, steps) for group in (comparison.first, comparison.second)]
    if min(map(len, groups)) == 0:
        return "no records", f"{pair}: its evaluation is not there yet"
    figures = " and ".join(f"{short(sum(values) / len(values))} ({len(values)} seeds)" for values in groups)
    if min(map(len, groups)) < FEWEST:
        return "undecided", f"{pair}: {figures} at {steps:,} steps; fewer than {FEWEST} seeds decide nothing"
    difference, half = welch(*groups)
    verdict = judge(comparison, difference, half, sum(groups[1]) / len(groups[1]))
    interval = f"{short(difference - half)} to {short(difference + half)}"
    return verdict, f"{pair}: {figures} at {steps:,} steps, difference {interval}: {verdict}"


def joined(verdicts):
    """The verdict of a claim from those of its comparisons."""
    for worst in ("does not hold", "no records", "undecided"):
        if worst in verdicts:
            return worst
    return "holds"


def page(listed, results):
    """What is between the markers of the page: the verdicts."""
    records = Records(listed, results)
    found = []
    for each in CLAIMS:
        verdicts, lines = zip(*(judged(comparison, each.steps, records) for comparison in each.comparisons))
        found.append((each, joined(verdicts), lines))
    counts = collections.Counter(verdict for _, verdict, _ in found)
    order = ("holds", "does not hold", "undecided", "no records")
    lines = ["", "**" + ", ".join(f"{counts[verdict]} {verdict}" for verdict in order) + f"**, of {len(found)} claims.", "",
             "| claim | place | verdict |", "|---|---|---|"]
    lines += [f"| [{each.sentence}](#{each.name}) | {each.task}, {each.place} | {verdict} |" for each, verdict, _ in found]
    for each, verdict, comparisons in found:
        quantities = dict.fromkeys(comparison.quantity for comparison in each.comparisons)
        names = dict.fromkeys(group[0] for comparison in each.comparisons for group in (comparison.first, comparison.second))
        compared = "; ".join(f"{quantity} ({QUANTITIES[quantity]})" for quantity in quantities)
        lines += ["", f"## {each.name}", "",
                  *wrap(f"{each.task}, {each.place}: *{each.sentence}* **{verdict.capitalize()}.** Compared: {compared}."), ""]
        for line in comparisons:
            lines += wrap("* " + line, "  ")
        lines += ["", *wrap(f"    deploy/dev/reproduce {' '.join(names)}", "        ", " \\")]
    return "\n".join(lines) + "\n\n"


def wrap(text, indent="", end=""):
    """Lines of a page; all but the last get `end`."""
    lines = textwrap.wrap(text, WIDTH - len(end), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [line + end for line in lines[:-1]] + lines[-1:]
# SPDX-License-Identifier: Apache-2.0
