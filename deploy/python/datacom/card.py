"""Writes a model card of a run: what was trained on what, how it scores, what it costs, and what it must not be used for.

  python -m datacom.card RUN [--out README.md]

The card is Markdown with the metadata that Hugging Face's hub reads. Numbers come from the run's records alone.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from datacom import _files, _native
from datacom.runs import Run, interquartile_mean


def _line(values: object) -> str:
    mean = interquartile_mean(values)  # type: ignore[arg-type]
    return f"{mean.mean:.4g} [{mean.low:.4g}, {mean.high:.4g}]" if mean.n else "not recorded"


def _metadata(run: Run, last: Any, licence: str) -> list[str]:
    """What the hub reads: tags, and the results that it shows, as its model-index. The licence is the author's to choose."""
    results = [("mean_reward", "eval_return"), ("mean_cost", "eval_sum_cost")]
    lines = [f"license: {licence}"] if licence else []
    lines += ["library_name: datacom", "pipeline_tag: reinforcement-learning",
              f"tags: [reinforcement-learning, safe-reinforcement-learning, {json.dumps(run.task)}, {json.dumps(run.algorithm)}]"]
    means = {name: interquartile_mean(last[column]) for name, column in results}
    if not all(mean.n for mean in means.values()):
        return lines
    lines += ["model-index:", f"- name: {json.dumps(run.name)}", "  results:", "  - task: {type: reinforcement-learning, name: reinforcement-learning}",
              f"    dataset: {{type: {json.dumps(run.task)}, name: {json.dumps(run.task)}}}", "    metrics:"]
    for name, mean in means.items():
        lines.append(f"    - {{type: {name}, name: {name}, value: {json.dumps(f'{mean.mean:.4g} [{mean.low:.4g}, {mean.high:.4g}]')}}}")
    return lines


_USE = 'import datacom\n    policy = datacom.Policy("FILE")  # written by: datacom export RUN --out FILE'


def card(run: Run, *, licence: str = "", use: str = _USE) -> str:
    """The card of a run as Markdown. licence: an identifier that the hub knows; empty: none. use: the lines that load a policy. Raises ValueError
    for a run without an evaluation."""
    rows, episodes = run.progress, run.episodes
    if rows.empty:
        raise ValueError(f"{run.path} has no evaluation yet")
    last = rows.sort_values("epoch").groupby("member").last()
    build = (run.path / "build.txt").read_text() if (run.path / "build.txt").is_file() else ""
    facts = dict(line.split(" ", 1) for line in build.splitlines() if " " in line)
    steps, goal = int(last["env_steps"].min()), run.experiment["run"]["env_steps"]
    budget = run.experiment.get("hyper", {}).get("cost_budget")
    cost = episodes.groupby("member")["sum_cost"].sum().reindex(range(len(run.seeds)), fill_value=0)
    violating = episodes.groupby("member")["violating_steps"].sum().reindex(range(len(run.seeds)), fill_value=0) \
        if "violating_steps" in episodes else []  # runs of earlier revisions do not count them
    worst = episodes["max_violation"].max()
    table = [
        ("discounted return J", _line(last["eval_discounted_return"])),
        ("return", _line(last["eval_return"])),
        ("cost per episode", _line(last["eval_sum_cost"])),
        ("violating steps per episode", _line(last.get("eval_violating_steps", []))),
        ("largest violation of an episode", _line(last["eval_max_violation"])),
        ("episodes with success", _line(last["eval_success_rate"])),
        ("cost of the whole training, a seed", _line(cost)),
        ("violating steps of the whole training, a seed", _line(violating)),
    ]
    over = "no cost budget" if budget is None else f"a cost budget of {budget:g} an episode; {int((last['eval_sum_cost'] > budget).sum())} of {len(last)} seeds end above it"
    python = run.experiment.get("task_options", {}).get("[datacom.v1.python_task]")
    act = "policy.clip(policy.act(observation))" if python is None else \
        f"policy.bind(env).decide(observation, info).action  # env, observation, info: of {python['environment']}"
    trouble = last[last["status"] != "ok"]
    limits = [
        f"Trained and evaluated in simulation only ({facts.get('simulators', 'simulator not recorded')}). Nothing here was measured on a robot.",
        f"While learning it violated its constraints: the largest violation of a training episode is {worst:.4g}." if worst > 0
        else f"No training episode violated its constraints ({len(episodes)} episodes). That is no proof for the next one.",
        "The filter returns an action without clipping it; a robot must clip it to its own limits and must act without the policy when it fails.",
    ]
    if "init_delta" in run.experiment.get("hyper", {}):
        limits.append("The learned constraint is an estimate from the states of this task. In states unlike them it can be wrong.")
    if steps < goal:
        limits.insert(0, f"The run is not finished: {steps:,} of {goal:,} steps.")
    if len(run.seeds) < 5:
        limits.append(f"{len(run.seeds)} seeds say little about the spread; intervals over so few are narrow by construction.")
    if len(trouble):
        limits.append("Seeds that ended in trouble: " + ", ".join(f"{row.seed} ({row.status})" for row in trouble.itertuples()) + ".")
    return "\n".join([
        "---", *_metadata(run, last, licence), "---", "", f"# {run.name}", "",
        run.experiment.get("description", "").replace("\n", " "), "",
        f"Task `{run.task}`, algorithm `{run.algorithm}`, {over}. Seeds {', '.join(map(str, run.seeds))}; {steps:,} environment steps each; "
        f"datacom {facts.get('version', '')} {facts.get('revision', '')}.", "",
        "## Results", "", f"The last evaluation of each seed, {int(last['eval_episodes'].max())} episodes. Interquartile mean over the seeds and its 95 % bootstrap interval.", "",
        "| | |", "|---|---:|", *(f"| {name} | {value} |" for name, value in table), "",
        "## Limits", "", *(f"* {limit}" for limit in limits), "",
        "## Use", "", f"    {use}", f"    action = {act}", "",
        "## Settings", "", "The resolved experiment:", "", *("    " + line for line in (run.path / "experiment.textproto").read_text().splitlines()), ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m datacom.card", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    parser.add_argument("--out", default="-", help="file to write (standard output)")
    flags = parser.parse_args()
    _native.write(flags.out, card(Run(flags.run)).encode())


if __name__ == "__main__":
    _files.command(main)
# SPDX-License-Identifier: Apache-2.0
