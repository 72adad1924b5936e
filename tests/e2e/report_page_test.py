"""Opens reports and the live page of runs with known records in a headless Chromium: verdicts, budget, violations by episode, film, and that
nothing is cut off at three widths.
"""
import base64
import contextlib
import os
import struct
import subprocess
import unittest
import zlib

from running import BIN, RunTest  # also makes tests/testing importable

import browser
from watched_runs import Watching, WrittenRun

DATACOM = os.path.join(BIN, "datacom")
LEARNED = [0, 10, 20, 30, 40, 50, 60, 60, 60, 60, 60]  # returns of member 0 by epoch; member 1 has 4 more
ANSWERS = "[...document.querySelectorAll('.answer p')].map((p) => p.textContent)"
# What is wider than its place: everything that ends right of the window and is not inside a part that scrolls by itself.
CUT_OFF = """[...document.querySelectorAll('body *')].filter((one) => !one.closest('.wide *, pre *') && one.getClientRects().length &&
             one.getBoundingClientRect().right > innerWidth + 0.5 || one.matches('#violations .wide') && one.scrollWidth > one.clientWidth)
             .map((one) => one.outerHTML.slice(0, 80))"""


def picture():
    """A PNG of one grey pixel."""
    def part(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header) + part(b"IDAT", zlib.compress(b"\0\x80")) + part(b"IEND", b"")


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed (apt-get install chromium)")
class ReportPageTest(RunTest):
    def run(self, result=None):
        with contextlib.ExitStack() as self.ends:
            return super().run(result)

    def written(self, name, returns=LEARNED, cost=0.5, last=("ok", "ok"), arguments=("--set", "hyper.cost_budget=5")):
        run = WrittenRun(DATACOM, os.path.join(self.folder, name), *arguments)
        for epoch, value in enumerate(returns):
            ends = epoch == len(returns) - 1
            run.add_epoch(epoch, (value, value + 4), cost(epoch) if callable(cost) else cost, last if ends else ("ok", "ok"))
        return run

    def report(self, *runs):
        path = os.path.join(self.folder, "report.html")
        subprocess.run([DATACOM, "report", *(run.folder for run in runs), "--out", path], check=True, capture_output=True)
        page = self.ends.enter_context(browser.Browser()).open("file://" + path)
        page.wait("document.readyState === 'complete' && charts.size > 0")
        return page

    def test_a_run_that_has_learned_within_its_budget_is_finished(self):
        run = self.written("run")
        run.add_episodes(0, [3, 9])
        run.add_episodes(1, [0, 0])
        page = self.report(run)
        self.assertEqual(page.value(ANSWERS), [
            "Yes, and is now flat. Return went from 2 to 62 (seeds: 60 and 64).",
            "Yes. 2 of 2 seeds within the budget of 5. Cost of an episode now: 0.5 and 0.5. Training cost 6 a seed, 3 an episode.",
            f"Nothing is left to train. Measure the best epoch: datacom eval {run.folder} --epoch best --episodes 100"])
        self.assertEqual(page.value("document.querySelectorAll('.trouble').length"), 0)

    def test_a_run_above_its_budget_is_unsafe(self):
        run = self.written("run", cost=40)
        self.assertEqual(self.report(run).value(ANSWERS)[1:], [
            "No. 0 of 2 seeds within the budget of 5. Cost of an episode now: 40 and 40.",
            f"δ has not moved: it begins after 50,000 steps. Train longer: datacom train --run-dir {run.folder} --resume --steps 200000"])

    def test_a_run_whose_threshold_follows_the_budget_but_whose_policy_does_not_pay_is_told_to_let_it_pay(self):
        run = self.written("run", cost=40, arguments=("--set", "hyper.cost_budget=5", "--set", "hyper.delta_mode=peak"))
        self.assertEqual(self.report(run).value(ANSWERS)[2],
                         f"Let the policy pay for its cost: datacom train {run.folder}/experiment.textproto --set hyper.multiplier_mode=pi")

    def test_a_cost_that_still_falls_needs_more_steps(self):
        run = self.written("run", cost=lambda epoch: 100 - 8 * epoch)
        self.assertEqual(self.report(run).value(ANSWERS)[1:], [
            "No. 0 of 2 seeds within the budget of 5. Cost of an episode now: 28 and 28.",
            f"The cost still falls. Train longer: datacom train --run-dir {run.folder} --resume --steps 20000"])

    def test_a_return_that_rises_to_the_end_needs_more_steps(self):
        run = self.written("run", returns=[10 * epoch for epoch in range(11)])
        self.assertEqual(self.report(run).value(ANSWERS)[0::2], [
            "Yes, and still rises. Return went from 2 to 92 (seeds: 90 and 94).",
            f"Train longer: datacom train --run-dir {run.folder} --resume --steps 20000"])

    def test_a_return_that_falls_is_best_at_an_earlier_epoch(self):
        run = self.written("run", returns=[0, 20, 40, 60, 80, 90, 80, 70, 60, 50, 40])
        self.assertEqual(self.report(run).value(ANSWERS)[0::2], [
            "It did, and now falls. Return went from 2 to 52 (seeds: 50 and 54).",
            f"Use the best epoch instead of the last: datacom eval {run.folder} --epoch best"])

    def test_a_return_that_stays_where_it_began_is_no_learning(self):
        run = self.written("run", returns=[3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3])
        self.assertEqual(self.report(run).value(ANSWERS)[0], "No. Return went from 5 to 4.67 (seeds: 2.67 and 6.67).")

    def test_a_seed_whose_critic_runs_away_is_named(self):
        run = self.written("run", last=("ok", "runaway"))
        page = self.report(run)
        self.assertEqual(page.value("[...document.querySelectorAll('.trouble')].map((p) => p.textContent)"),
                         ["Seed 1 runaway: the loss of the critic has grown tenfold, or its temperature thirtyfold."])
        self.assertEqual(page.value(ANSWERS)[2], "Earlier policies are kept; see the alert CriticRunsAway. Train again with a smaller learning "
                         f"rate: datacom train {run.folder}/experiment.textproto --set hyper.critic_lr=0.00025")

    def test_a_seed_whose_shield_is_locked_is_named_with_a_change_that_its_settings_allow(self):
        for mode, advice, override in (("learned", "Let δ follow the risk of acceptable episodes", "delta_mode=peak"),
                                       ("peak", "Raise δ", "delta_margin=1.65")):
            run = self.written(mode, last=("ok", "locked"), arguments=("--set", f"hyper.delta_mode={mode}"))
            self.assertEqual(self.report(run).value(ANSWERS)[2], f"See the alert ShieldLocked. {advice} in a new run: "
                             f"datacom train {run.folder}/experiment.textproto --set hyper.{override}")

    def test_a_seed_that_abandons_its_episodes_is_named_with_the_reason(self):
        run = self.written("run", last=("ok", "abandoned"))
        page = self.report(run)
        self.assertEqual(page.value("[...document.querySelectorAll('.trouble')].map((p) => p.textContent)"),
                         ["Seed 1 abandoned: more than a tenth of the episodes broke off, the first one in step 21 the reward is not finite."])
        self.assertEqual(page.value(ANSWERS)[2],
                         "Mend the task or its simulator, then train again. What was broken off taught only its first steps.")

    def test_three_evaluations_are_too_few_for_a_verdict(self):
        run = self.written("run", returns=[0, 20, 30])
        self.assertEqual(self.report(run).value(ANSWERS), [
            "Too early to say. 3 evaluations; a trend needs 9. Return went from 2 to 18.7 (seeds: 16.7 and 20.7).",
            "Too early to say. 2 of 2 seeds within the budget of 5. Cost of an episode now: 0.5 and 0.5.",
            f"Resume: 20 % of the steps are done. datacom train --run-dir {run.folder} --resume"])

    def test_the_chart_of_the_cost_has_the_budget_as_a_line(self):
        page = self.report(self.written("run", cost=40))
        self.assertEqual(page.value("""charts.get('eval_sum_cost').data.datasets.filter((one) => one.budget !== undefined)
                                       .map((one) => [one.label, one.data.map((point) => [point.x, point.value])])"""),
                         [["budget 5", [[0, 5], [10000, 5]]]])
        top = "charts.get('eval_sum_cost').scales.y.getPixelForValue(scaleOf({column: 'eval_sum_cost'}).to(%s))"
        place = page.value(f"[{top % 40}, {top % 5}, {top % 0}]")
        self.assertEqual(place, sorted(place), "40 above the budget, the budget above 0")

    def test_both_members_of_two_are_drawn_and_the_axis_is_theirs(self):
        page = self.report(self.written("run"))
        lines = "charts.get('eval_return').data.datasets.map((one) => [one.label, one.data.at(-1).value])"
        self.assertEqual(page.value(lines), [["cartpole/datacom, seed 0", 60], ["cartpole/datacom, seed 1", 64], ["cartpole/datacom", 62]])
        self.assertEqual(page.value("[charts.get('eval_return').scales.y.min, charts.get('eval_return').scales.y.max]"), [0, 80])

    def test_violations_are_listed_by_episode(self):
        run = self.written("run")
        run.add_episodes(0, list(range(12)))
        run.add_episodes(1, [0, 6.5])
        page = self.report(run)
        self.assertEqual(page.value("document.querySelector('#violations summary').textContent"),
                         "Violations by episode: 12 of 14 training episodes")
        rows = page.value("[...document.querySelectorAll('#violations tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(len(rows), 10)
        self.assertEqual(rows[0], ["0", "12", "1,200", "4", "2.75", "11"])
        self.assertEqual([row[0] + ":" + row[5] for row in rows[4:7]], ["0:7", "1:6.5", "0:6"])

    def test_the_film_stands_beside_the_charts(self):
        run = self.written("run")
        self.assertEqual(self.report(run).value("document.querySelectorAll('#beside *').length"), 0)
        with open(os.path.join(run.folder, "film.png"), "wb") as file:
            file.write(picture())
        page = self.report(run)
        film = "document.querySelector('#beside img')"
        self.assertEqual(page.value(film + ".src"), "data:image/png;base64," + base64.b64encode(picture()).decode())
        self.assertEqual(page.value(f"{film}.decode().then(() => {film}.naturalWidth)"), 1)
        self.assertEqual([url for url in page.requests() if not url.startswith(("file:", "data:"))], [])

    def check_widths(self, page):
        for width, height in ((1280, 800), (800, 1000), (400, 900)):
            page.resize(width, height)
            for opened in ("false", "true"):
                page.value(f"document.querySelectorAll('details').forEach((one) => {{ one.open = {opened}; }})")
                page.wait("[...document.querySelectorAll('#curves details[open]')].every((one) => one.hidden || "
                          "[...one.querySelectorAll('canvas')].every((canvas) => Chart.getChart(canvas)))")
                page.wait(f"innerWidth === {width} && document.documentElement.scrollWidth <= {width} && {CUT_OFF}.length === 0",
                          shown=f"[innerWidth, document.documentElement.scrollWidth, {CUT_OFF}]")
            page.value("document.querySelectorAll('details').forEach((one) => { one.open = false; })")

    def test_nothing_is_cut_off_in_a_report_of_two_runs(self):
        runs = [self.written("first"), self.written("second-run-whose-folder-has-a-long-name-without-any-spaces", cost=4000,
                                                    arguments=("--set", "hyper.cost_budget=25", "--set", "hyper.delta_warmup=1000"))]
        for run in runs:
            run.add_episodes(0, [4000.123456] * 20)
        page = self.report(*runs)
        self.check_widths(page)
        self.assertNotEqual(*page.value("data.groups.map((one) => one.colour)"), "two runs of one algorithm")
        self.assertEqual(page.complaints(), [])

    def test_nothing_is_cut_off_on_the_live_page_and_its_verdict_is_the_reports(self):
        run = self.written("run", cost=40)
        run.add_episodes(1, [3, 9])
        run.add_violations(1, 7)
        said = self.report(run).value(ANSWERS)
        watching = self.ends.enter_context(Watching(DATACOM, run.folder))
        page = self.ends.enter_context(browser.Browser()).open(f"http://{watching.address}/")
        page.wait("charts.size > 0")
        self.assertEqual(page.value(ANSWERS), said)
        self.check_widths(page)
        self.assertIn(f"The ledger has 7 violating steps: datacom replay-violation {run.folder} 7 --out violation.html",
                      page.value("byId('violations').textContent"))
        self.assertEqual(page.complaints(), [])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
