"""Draws docs/figures/*.svg for deploy/dev/results_tables. Needs matplotlib: pip install matplotlib.

The same version of matplotlib draws the same bytes from the same records.
"""
import os

import matplotlib
from matplotlib import pyplot

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "datacom", "svg.fonttype": "none", "font.size": 12, "axes.titlesize": 12,
                            "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})

# Okabe and Ito's colours, which people with any colour vision can tell apart. Other methods are in the tables only.
LOOKS = {"datacom": ("#0072B2", "-"), "limits_known": ("#D55E00", "-"), "from_scratch": ("#56B4E9", "-"), "sac": ("#000000", "--"), "lag_sac": ("#009E73", "-"),
         "wcsac": ("#CC79A7", "-."), "atacom_fi": ("#E69F00", ":")}
# Column, title with its unit, and below which value the logarithmic axis is linear; None: the whole axis is linear.
PANELS = (("eval_discounted_return", "Discounted return J", None),
          ("eval_sum_cost", "Cost of an episode (sum over its steps)", 0.1),
          ("eval_max_violation", "Largest violation of an episode (units of the cost)", 0.001),
          ("eval_success_rate", "Share of episodes with success", None))
STEPS = 50_000       # of training: a point is the mean of a seed's evaluations in so many steps
MOST = 1_000_000     # environment steps; the longer trainings are in the tables


def curve(member, column):
    """{steps in thousands: mean of the evaluations up to them} of a member."""
    found = {}
    for row in member.evaluated:
        if row[column] and int(row["env_steps"]) <= MOST:
            found.setdefault(-(-int(row["env_steps"]) // STEPS) * STEPS // 1000, []).append(float(row[column]))
    return {at: sum(values) / len(values) for at, values in found.items()}


def draw_curves(axes, group, column, look):
    curves = [curve(member, column) for member in group]
    at = sorted(set.intersection(*map(set, curves)))
    values = [[own[steps] for own in curves] for steps in at]
    colour, line = look
    axes.plot(at, [sum(own) / len(own) for own in values], line, color=colour, linewidth=2)
    axes.fill_between(at, [min(own) for own in values], [max(own) for own in values], color=colour, alpha=0.15, linewidth=0)


def draw(path, task, methods):
    """methods: {entry: members} of the task; draws those of LOOKS."""
    shown = {entry: group for entry, group in methods.items() if entry.name.split("/")[1] in LOOKS and group}
    figure, grid = pyplot.subplots(2, 2, figsize=(10, 7.4), layout="constrained")
    for axes, (column, title, linear) in zip(grid.flat, PANELS):
        for entry, group in shown.items():
            draw_curves(axes, group, column, LOOKS[entry.name.split("/")[1]])
        axes.set_title(title, loc="left")
        axes.set_xlabel("environment steps of a seed, in thousands")
        axes.set_xlim(left=0)
        if linear:
            axes.set_yscale("symlog", linthresh=linear)
            axes.set_ylim(bottom=0)
        elif column == "eval_success_rate":
            axes.set_ylim(0, 1)
    lines = [pyplot.Line2D([], [], color=colour, linestyle=line, linewidth=2)
             for colour, line in (LOOKS[entry.name.split("/")[1]] for entry in shown)]
    names = [f"{entry.title} ({len(group)} seeds)" for entry, group in shown.items()]
    figure.legend(lines, names, loc="outside lower center", ncols=3 if max(map(len, names)) < 30 else 2, frameon=False)
    figure.suptitle(f"{task}. Line: mean of the seeds; band: lowest to highest seed", fontsize=13)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def draw_shield(path, groups):
    """groups: {name: members}, each with a shield that was played. A line for each seed, from its cost without to that with it."""
    figure, axes = pyplot.subplots(figsize=(10, 1.4 + 0.5 * len(groups)), layout="constrained")
    for at, group in enumerate(groups.values()):
        for i, member in enumerate(group):
            y = at + 0.6 * (i + 0.5) / len(group) - 0.3
            without, with_it = (member.played("sum_cost", shield) for shield in ("off", "on"))
            axes.plot([without, with_it], [y, y], color="#999999", linewidth=1, zorder=1)
            axes.plot([without], [y], "o", color="#D55E00", markersize=5, markerfacecolor="white", label="without" if at == i == 0 else None)
            axes.plot([with_it], [y], "o", color="#0072B2", markersize=5, label="with what the filter learned" if at == i == 0 else None)
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(left=-0.001)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("cost of an episode")
    figure.legend(loc="outside upper right", frameon=False, ncols=2)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
# SPDX-License-Identifier: Apache-2.0
