#!/usr/bin/env python3
"""Writes deploy/grafana/dashboards/*.json, the dashboards of Grafana 10 and later (classic model).

usage: dashboards.py [FOLDER]. A dashboard is a list of rows; a row is a list of panels that share the 24 columns equally; a panel
has a title, a unit, a description and queries. A test checks that the written files match; another runs every query on a real run.
"""
import ast
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RUN = 'run=~"$run",task=~"$task"'
MEMBER = RUN + ',member=~"$member"'
INFO = "on (run, task, algorithm, member) group_left (seed, label) max by (run, task, algorithm, member, seed, label) (datacom_member_info)"


def variable(name, query, label=None):
    return {"name": name, "label": label or name, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name},
            "definition": query, "refresh": 2, "sort": 3, "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"text": "All", "value": "$__all"}}


VARIABLES = [
    {"name": "datasource", "label": "data source", "type": "datasource", "query": "prometheus",
     "current": {"text": "datacom", "value": "datacom-prometheus"}},
    variable("run", "label_values(datacom_build_info, run)"),
    variable("task", 'label_values(datacom_build_info{run=~"$run"}, task)'),
    variable("member", 'label_values(datacom_member_delta{run=~"$run",task=~"$task"}, member)'),
]


def panel(title, unit, text, *queries, kind="timeseries", **options):
    """`queries`: (expression, legend). `options`: further fieldConfig.defaults, `transformations`, panel options."""
    transformations = options.pop("transformations", [])
    custom = options.pop("custom", {"showPoints": "never", "lineWidth": 1, "fillOpacity": 0} if kind == "timeseries" else {})
    own = options.pop("options", {})
    instant = kind in ("table", "stat", "bargauge")
    targets = [{"refId": "ABCDEFGH"[i], "datasource": SOURCE, "expr": expression, "legendFormat": legend, "range": not instant,
                "instant": instant, "format": "table" if kind == "table" else "time_series"}
               for i, (expression, legend) in enumerate(queries)]
    return {"title": title, "type": kind, "description": text, "datasource": SOURCE, "targets": targets, "options": own,
            "fieldConfig": {"defaults": {"unit": unit, "custom": custom, **options}, "overrides": []},
            "transformations": transformations}


def dashboard(name, title, text, rows):
    panels, y = [], 0
    for row in rows:
        width = 24 // len(row)
        for i, item in enumerate(row):
            height = 4 if item["type"] == "stat" else 8
            panels.append({"id": len(panels) + 1, "gridPos": {"h": height, "w": width, "x": i * width, "y": y}, **item})
        y += max(4 if item["type"] == "stat" else 8 for item in row)
    return {"id": None, "uid": "datacom-" + name, "title": "datacom: " + title, "description": text, "tags": ["datacom"],
            "timezone": "browser", "editable": False, "graphTooltip": 1, "refresh": "10s", "schemaVersion": 38, "version": 1,
            "time": {"from": "now-1h", "to": "now"}, "annotations": {"list": []},
            "links": [{"type": "dashboards", "tags": ["datacom"], "title": "datacom", "asDropdown": False, "includeVars": True,
                       "keepTime": True}],
            "templating": {"list": VARIABLES}, "panels": panels}


def member(name, title, unit, text):
    """A gauge of the members, one line per member."""
    return panel(title, unit, text, (f"max by (run, algorithm, member) ({name}{{{MEMBER}}})", "{{algorithm}} {{run}} member {{member}}"))


def parsed(lines):
    """A message in protobuf's text format, one entry a line: name -> list of texts and messages."""
    message = {}
    for line in lines:
        line = line.strip()
        if line == "}":
            break
        name, _, value = line.partition(" ")
        if value == "{":
            message.setdefault(name, []).append(parsed(lines))
        else:
            value = ast.literal_eval("b" + value).decode() if value.startswith('"') else value
            message.setdefault(name.rstrip(":"), []).append(value)
    return message


def statistics():
    """Name -> option (statistic) of every field of MemberEpoch that has a gauge. Sections and their entries have the report's order."""
    compiler, option = ["protoc", "-I", os.path.join(ROOT, "proto")], "datacom/v1/statistic.proto"
    files = subprocess.run([*compiler, "--descriptor_set_out=/dev/stdout", "datacom/v1/member_epoch.proto"], stdout=subprocess.PIPE, check=True).stdout
    text = subprocess.run([*compiler, "--decode=google.protobuf.FileDescriptorSet", option], input=files, stdout=subprocess.PIPE, check=True).stdout
    epoch, = parsed(iter(text.decode().splitlines()))["file"][0]["message_type"]
    found = {}
    for field in epoch["field"]:
        about = field.get("options", [{}])[0].get("[datacom.v1.statistic]", [{}])[0]
        if "help" in about:
            found[field["name"][0]] = {name: values[0] for name, values in about.items()}
    sections = ["TRAINING", "LEARNING", "CRITICS", "SYSTEM"]
    return dict(sorted(found.items(), key=lambda entry: (sections.index(entry[1]["section"]), int(entry[1].get("order", 100)))))


def statistic(name, about):
    return member("datacom_member_" + name, about["title"], "short", about["help"] + ".")


def quantiles(name, title, unit, text, runs=""):
    """Median and 99th percentile of a histogram over all processes of a run. runs: " and on (run) ..." chooses runs."""
    rate = f"sum by (run, le) (rate({name}_bucket{{{RUN}}}[$__rate_interval])){runs}"
    return panel(title, unit, text, *[(f"histogram_quantile({q}, {rate})", f"{{{{run}}}} {label}") for q, label in ((0.5, "p50"), (0.99, "p99"))])


def seeds(name):
    """A gauge of the members with their seed and setting (method and point of the sweep) as labels."""
    value = f"max by (run, task, algorithm, member) ({name}{{{RUN}}}) * {INFO}"
    return f'label_join({value}, "setting", " ", "algorithm", "label")'


def ranked(title, unit, text, expression, **options):
    names = {"Value": title, "setting": "setting", "seed": "seed", "member": "member", "run": "run"}
    return panel(title, unit, text, (expression, ""), kind="table",
                 transformations=[{"id": "organize", "options": {"excludeByName": {name: True for name in ("Time", "task", "algorithm", "label")},
                                                                 "renameByName": names}},
                                  {"id": "sortBy", "options": {"sort": [{"field": title, "desc": True}]}}], **options)


COLOURS = {"mode": "continuous-GrYlRd"}
BACKGROUND = {"cellOptions": {"type": "color-background", "mode": "basic"}}


def matrix(title, unit, text, name):
    return panel(title, unit, text, (f"avg by (setting, seed) ({seeds(name)})", ""), kind="table", color=COLOURS, custom=BACKGROUND,
                 transformations=[{"id": "groupingToMatrix", "options": {"rowField": "setting", "columnField": "seed", "valueField": "Value"}}])


def safety():
    cost = "member:datacom_cost_per_episode:rate30m"
    violations = "member:datacom_violations_per_episode:rate30m"
    over = "member:datacom_cost_over_budget:rate30m"
    return dashboard("safety", "Safety", "Violations, cost against budget, the learned constraint and the filter's activity.", [
        [panel("Violations so far", "short", "Transitions with cost > 0 in finished training episodes.",
               (f"sum by (run) (datacom_member_violations_total{{{MEMBER}}})", "{{run}}"), kind="stat"),
         panel("Cost so far", "short", "Sum of violation costs over finished training episodes.",
               (f"sum by (run) (datacom_member_cost_total{{{MEMBER}}})", "{{run}}"), kind="stat"),
         panel("Members over budget", "percentunit", "Share of the members whose cost per episode is above the budget.",
               (f"run:datacom_members_over_budget:ratio{{{RUN}}}", "{{run}}"), kind="stat", max=1, min=0)],
        [panel("Violations per episode, by task and method", "short", "Mean over members and 30 minutes.",
               (f"avg by (task, algorithm) ({violations}{{{MEMBER}}})", "{{task}} {{algorithm}}")),
         panel("Violations per episode, by member", "short", "Mean over 30 minutes.",
               (f"{violations}{{{MEMBER}}}", "{{algorithm}} {{run}} member {{member}}"))],
        [panel("Cost against budget", "short", "Cost per episode of each member, mean over 30 minutes, and the budgets.",
               (f"{cost}{{{MEMBER}}}", "{{algorithm}} {{run}} member {{member}}"),
               (f"max by (run, algorithm) (datacom_member_cost_budget{{{MEMBER}}})", "budget of {{algorithm}} {{run}}")),
         member("datacom_member_eval_sum_cost", "Cost of the newest evaluation", "short", "Mean cost sum of its episodes."),
         member("datacom_member_eval_violating_steps", "Violating steps of the newest evaluation", "short",
                "Mean number of steps with cost > 0 per episode.")],
        [panel("Cost by name", "short", "Sum of each cost per training episode, mean over 30 minutes. Empty for tasks with one cost.",
               (f"member:datacom_named_cost_per_episode:rate30m{{{MEMBER}}}", "{{cost}} {{algorithm}} {{run}} member {{member}}")),
         panel("Cost by name, newest evaluation", "short", "Mean sum of each cost per episode. Empty for tasks with one cost.",
               (f"max by (run, algorithm, member, cost) (datacom_member_eval_named_cost{{{MEMBER}}})", "{{cost}} {{algorithm}} {{run}} member {{member}}")),
         panel("Violations so far, by cost", "short",
               "Transitions with that cost > 0 in finished training episodes. Empty for tasks with one cost.",
               (f"sum by (run, algorithm, cost) (datacom_member_named_violations_total{{{MEMBER}}})", "{{cost}} {{algorithm}} {{run}}"))],
        [member("datacom_member_delta", "δ", "short", "Threshold of the learned constraint k = CVaR - δ."),
         member("datacom_member_cvar", "CVaR", "short", "CVaR of the long-term cost, mean over recent batches."),
         panel("k = CVaR - δ", "short", "Mean over recent batches. Above 0 the safe map overrides the policy almost everywhere.",
               (f"max by (run, algorithm, member) (datacom_member_cvar{{{MEMBER}}}) - max by (run, algorithm, member) (datacom_member_delta{{{MEMBER}}})",
                "{{algorithm}} {{run}} member {{member}}"))],
        [member("datacom_member_eval_shield_share", "Shield at work, newest evaluation", "percentunit",
                "Share of steps in which the learned constraint changes the action by more than 0.02. 0: the shield is idle."),
         member("datacom_member_shield_locked", "Shield locked", "short",
                "1 when the learned constraint forbids more than half of the states of the newest epochs.")],
        [panel("Filter activity", "percentunit", "Share of the steps whose action the filter changed by more than 0.01.",
               (f"run:datacom_filter_active:ratio_rate5m{{{RUN}}}", "{{algorithm}} {{run}}"), min=0, max=1),
         quantiles("datacom_actor_filter_intervention", "Filter's change of an action", "short", "Norm of the change, in normalised action units."),
         member("datacom_member_eval_max_violation", "Largest violation per episode, newest evaluation", "short", "Mean over its episodes.")],
        [ranked("Worst members", "short", "Cost per episode above the budget.", f"topk(10, {over}{{{MEMBER}}})", color=COLOURS, custom=BACKGROUND)],
    ])


def learning():
    panels = [statistic(name, about) for name, about in statistics().items()]
    return dashboard("learning", "Learning", "Returns, losses and entropy of each member.", [
        [panel("Progress", "percentunit", "Updates done, as a share of the whole run.", (f"run:datacom_progress:max{{{RUN}}}", "{{run}}"), kind="stat", min=0, max=1),
         panel("Steps of a member", "short", "Environment steps that the updates have seen.", (f"max by (run) (datacom_member_env_steps{{{MEMBER}}})", "{{run}}"), kind="stat"),
         panel("Members diverged", "short", "Frozen because a loss was not finite.", (f"max by (run) (datacom_learner_diverged_members{{{RUN}}})", "{{run}}"), kind="stat"),
         panel("Evaluations not played yet", "short", "Over all epochs.", (f"max by (run) (datacom_learner_pending_evaluations{{{RUN}}})", "{{run}}"), kind="stat")],
        [member("datacom_member_eval_discounted_return", "Discounted return, newest evaluation", "short", "Mean over its episodes."),
         panel("Discounted return, by task and method", "short", "Mean over members.",
               (f"avg by (task, algorithm) (datacom_member_eval_discounted_return{{{MEMBER}}})", "{{task}} {{algorithm}}"))],
        [member("datacom_member_return", "Return of the newest training episode", "short", "Undiscounted, with exploration."),
         panel("Training episodes", "short", "Episodes finished per minute.",
               (f"60 * sum by (run, algorithm) (rate(datacom_member_episodes_total{{{MEMBER}}}[$__rate_interval]))", "{{algorithm}} {{run}}")),
         member("datacom_member_critic_runaway", "Critic runs away", "short",
                "1 when the loss of the newest epoch is more than ten times the smallest of the ten epochs before.")],
        *[panels[i:i + 3] for i in range(0, len(panels), 3)],
    ])


def waits(name, label, title, text):
    return panel(title, "percentunit", text,
                 (f"sum by (run, {label}) (rate({name}{{{RUN}}}[$__rate_interval]))", f"{{{{run}}}} {{{{{label}}}}}"))


def gauge(name, title, unit, text, by="run, process", legend="{{run}} {{process}}"):
    return panel(title, unit, text, (f"max by ({by}) ({name}{{{RUN}}})", legend))


def gpus(name, title, unit, text):
    """A metric of NVIDIA's dcgm-exporter, one line per GPU."""
    return panel(title, unit, text + " Of every GPU that Prometheus knows; needs NVIDIA's dcgm-exporter.",
                 (f"max by (Hostname, gpu) ({name})", "{{Hostname}} GPU {{gpu}}"))


def throughput():
    return dashboard("throughput", "Throughput", "How fast a run is, what it waits for and which resources it uses.", [
        [panel("Environment steps", "ops", "Per second, over all actors.", (f"run:datacom_env_steps:rate5m{{{RUN}}}", "{{run}}")),
         panel("Updates", "ops", "Per second; one update covers the whole population.", (f"run:datacom_updates:rate5m{{{RUN}}}", "{{run}}")),
         panel("Rows in, draws out", "ops", "Per second.",
               (f"sum by (run) (rate(datacom_replay_inserts_total{{{RUN}}}[$__rate_interval]))", "{{run}} rows"),
               (f"sum by (run) (rate(datacom_replay_draws_total{{{RUN}}}[$__rate_interval]))", "{{run}} draws"))],
        [gauge("datacom_replay_samples_per_insert_error_ratio", "Error of samples per insert", "percentunit", "Relative error of the worst member; 0 is exact.",
               "run", "{{run}}"),
         gauge("datacom_actor_policy_lag_updates", "Policy lag", "short", "Updates by which the acting policy is behind; the largest among an actor's members."),
         gauge("datacom_actor_snapshot_age_seconds", "Snapshot age", "s", "The oldest snapshot among an actor's members.")],
        [quantiles("datacom_replay_insert_seconds", "Insert latency", "s", "From a chunk's arrival to its commit."),
         quantiles("datacom_replay_draw_seconds", "Draw latency", "s", "Time to assemble the batches of all members."),
         quantiles("datacom_learner_update_seconds", "Update duration", "s", "One update of all members.")],
        [waits("datacom_actor_wait_seconds_total", "reason", "Actors blocked by reason", "Sum over actors: 2 means that two actors wait all the time."),
         waits("datacom_learner_wait_seconds_total", "reason", "Learner blocked by reason", "draw: waits for the replay; features: waits for decoding."),
         waits("datacom_replay_blocked_seconds_total", "side", "Replay blocks by side", "insert: the actors are ahead; draw: the learner is ahead.")],
        [quantiles("datacom_learner_update_seconds", "Update duration on GPUs", "s",
                   "One update of all members, in runs whose learner computes on a GPU. Empty for other runs.",
                   f' and on (run) datacom_learner_device_info{{{RUN},device!="cpu"}}'),
         gpus("DCGM_FI_DEV_GPU_UTIL", "GPU utilisation", "percent", "Share of the time in which something ran."),
         gpus("DCGM_FI_DEV_FB_USED", "GPU memory in use", "mbytes", "By all processes.")],
        [quantiles("datacom_actor_safe_map_seconds", "Acting time per step", "s", "Policy and safe map."),
         quantiles("datacom_actor_step_seconds", "Simulation time per step", "s", "One environment."),
         panel("Processes", "short", "Processes that answer Prometheus.", (f"count by (run, role) (datacom_build_info{{{RUN}}})", "{{run}} {{role}}"))],
        [panel("Sessions and environments", "short", "Of all actors.", (f"max by (run) (datacom_replay_sessions{{{RUN}}})", "{{run}} sessions"),
               (f"sum by (run) (datacom_actor_environments{{{RUN}}})", "{{run}} environments")),
         gauge("datacom_replay_outstanding_rows", "Granted and not inserted", "short", "Rows that actors may still insert.", "run", "{{run}}"),
         panel("Rows held", "short", "Rows stored, over all members.", (f"max by (run, table) (datacom_replay_rows{{{RUN}}})", "{{run}} {{table}}"))],
        [panel("Age of the newest checkpoint", "s", "The most training time that a crash of the learner can lose.",
               (f"time() - max by (run) (datacom_learner_checkpoint_timestamp_seconds{{{RUN}}} > 0)", "{{run}}")),
         panel("Refused and abandoned", "short", "Per minute: refused rows and abandoned episodes, by reason.",
               (f"60 * sum by (run, reason) (rate(datacom_replay_rejected_rows_total{{{RUN}}}[$__rate_interval]))", "{{run}} rows {{reason}}"),
               (f"60 * sum by (run, reason) (rate(datacom_actor_abandoned_episodes_total{{{RUN}}}[$__rate_interval]))", "{{run}} episodes {{reason}}")),
         panel("Disk free", "bytes", "On the file systems of the rings and of the records.",
               (f"min by (run) (datacom_replay_disk_free_bytes{{{RUN}}})", "{{run}} replay"),
               (f"min by (run) (datacom_learner_disk_free_bytes{{{RUN}}})", "{{run}} records"))],
    ])


def who(waiting, name):
    """Share of the time by run and "WAITING: REASON"."""
    return f'label_replace(avg by (run, reason) (rate({name}{{{RUN}}}[$__rate_interval])), "who", "{waiting}: $1", "reason", "(.*)")'


def sweep():
    return dashboard("sweep", "Sweep", "Compares the members of all chosen runs: which setting is best, and do its seeds agree?", [
        [panel("Progress of the populations", "percentunit", "Updates done, as a share of the whole run.",
               (f"sort_desc(run:datacom_progress:max{{{RUN}}})", "{{task}} {{algorithm}} {{run}}"), kind="bargauge", min=0, max=1,
               options={"orientation": "horizontal"}),
         panel("Discounted return of a setting", "short", "Mean over its seeds, newest evaluations.",
               (f"avg by (task, setting) ({seeds('datacom_member_eval_discounted_return')})", "{{task}} {{setting}}")),
         panel("Cost of a setting", "short", "Mean over its seeds, newest evaluations.",
               (f"avg by (task, setting) ({seeds('datacom_member_eval_sum_cost')})", "{{task}} {{setting}}"))],
        [panel("Actors wait, by reason", "percentunit",
               "Mean share of the time over all actors. credit: for the learner; snapshot: for a policy; register: for lanes of the replay.",
               (f"avg by (reason) (rate(datacom_actor_wait_seconds_total{{{RUN}}}[$__rate_interval]))", "{{reason}}"), min=0),
         panel("Learners wait, by reason", "percentunit",
               "Mean share of the time over all learners. draw: for rows of the actors; features: for decoding.",
               (f"avg by (reason) (rate(datacom_learner_wait_seconds_total{{{RUN}}}[$__rate_interval]))", "{{reason}}"), min=0),
         panel("Waiting, run by reason", "percentunit", "Mean share of the time in which an actor, or the learner, of a run waits.",
               (f"{who('actors', 'datacom_actor_wait_seconds_total')} or {who('learner', 'datacom_learner_wait_seconds_total')}", ""),
               kind="table", color=COLOURS, custom=BACKGROUND,
               transformations=[{"id": "groupingToMatrix", "options": {"rowField": "run", "columnField": "who", "valueField": "Value"}}])],
        [ranked("Discounted return", "short", "Members ranked, newest evaluation.", seeds("datacom_member_eval_discounted_return")),
         ranked("Cost", "short", "Members ranked, newest evaluation; the worst first.", seeds("datacom_member_eval_sum_cost"))],
        [matrix("Cost, setting by seed", "short", "Newest evaluation.", "datacom_member_eval_sum_cost"),
         matrix("Discounted return, setting by seed", "short", "Newest evaluation.", "datacom_member_eval_discounted_return")],
        [panel("Cost per episode over time, one line per seed", "short", "In training, mean over 30 minutes.",
               (f'label_join(member:datacom_cost_per_episode:rate30m{{{RUN}}} * {INFO}, "setting", " ", "algorithm", "label")', "{{setting}} seed {{seed}}"),
               kind="status-history", color=COLOURS, custom={"fillOpacity": 80, "lineWidth": 0}, options={"showValue": "never", "rowHeight": 0.9})],
    ])


def render():
    """File name -> content."""
    return {page["uid"].removeprefix("datacom-") + ".json": json.dumps(page, indent=1, ensure_ascii=False) + "\n"
            for page in (safety(), learning(), throughput(), sweep())}


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "grafana", "dashboards")
    for file_name, content in render().items():
        with open(os.path.join(target, file_name), "w", encoding="utf-8") as out:
            out.write(content)
# SPDX-License-Identifier: Apache-2.0
