"""Opens the page of `datacom watch`, and a report, in a headless Chromium: what they show, load and refuse. report_page_test.py tests the
verdicts.
"""
import contextlib
import http.server
import os
import signal
import threading
import unittest

from running import BIN, RunTest, Training  # also makes tests/testing importable

import browser
from watched_runs import Stream, Watching, WrittenRun

DATACOM = os.path.join(BIN, "datacom")
POINTS = "charts.get('eval_return').data.datasets.at(-1).data"  # of a written run; the mean is the last line
POINTS_OF_J = "charts.get('eval_discounted_return').data.datasets.at(-1).data"  # of a training
ROWS = "document.querySelectorAll('#violations tbody tr').length"


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed (apt-get install chromium)")
class WatchPageTest(RunTest):
    def run(self, result=None):
        with contextlib.ExitStack() as self.ends:
            return super().run(result)

    def browser(self, *flags):
        return self.ends.enter_context(browser.Browser(*flags))

    def watch(self, *arguments):
        return self.ends.enter_context(Watching(DATACOM, *arguments))

    def written(self, name="run", *arguments):
        return WrittenRun(DATACOM, os.path.join(self.folder, name), *arguments)

    def test_a_training_is_followed_to_its_end(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "1000000", overrides=["task_options.horizon=300"]).start()
        training.wait(lambda: os.path.exists(os.path.join(training.folder, "cluster", "learner.address")), "address of the learner")
        watching, chromium = self.watch(training.folder), self.browser()
        page = chromium.open(f"http://{watching.address}/")
        page.wait("byId('connection').textContent === 'live' && state.runs[0].state === 'learning'")
        page.value("window.unchanged = true")
        page.wait(f"{POINTS_OF_J}.length >= 2")
        page.value("""(window.seen = [], window.drawState = showState,
                       window.showState = () => { seen.push(structuredClone(state.runs[0])); drawState(); }, 0)""")
        before = page.value(f"{POINTS_OF_J}.length")
        page.wait(f"{POINTS_OF_J}.length > {before}")
        page.wait("state.runs[0].violations_total > 0")
        newest = page.value("state.runs[0].violations_total")
        page.wait(f"state.runs[0].violations_total > {newest} && {ROWS} === 10")
        page.wait("state.runs[0].waits.length > 0 && byId('waits').textContent.includes(state.runs[0].waits[0])")
        self.assertIn("actor-0", page.value("byId('waits').textContent"))
        page.wait("document.querySelector('#beside .progress p').textContent.startsWith('learning, ')")
        self.assertRegex(page.value("document.querySelectorAll('.answer p')[2].textContent"), r"^Wait: \d+ % of the steps are done\.$")
        states = page.value("seen.map((run) => [run.state, run.steps_per_second > 0, run.waits[0] || ''])")
        self.assertEqual([one for one in states if one[0] == "waiting" and one[1] and one[2].startswith("learner waits for rows")], [],
                         "a learner that waits for rows while the run moves learns, as `train` says")
        training.process.send_signal(signal.SIGINT)
        training.finish(75)
        page.wait("state.runs[0].state === 'not running'")
        with Stream(watching.address) as stream:
            page.wait("state.runs[0].violations_total === " + str(stream.wait(lambda state: True)["runs"][0]["violations_total"]))
            self.assertEqual(page.value("state"), stream.state, "all patches together give the whole")
        self.assertIs(page.value("window.unchanged"), True, "the page was not loaded again")
        self.assertEqual(page.requests(), [f"http://{watching.address}/", f"http://{watching.address}/events"])
        self.assertEqual(page.complaints(), [])

    def test_charts_tables_and_what_the_reader_opened_stay_while_a_run_grows(self):
        written = self.written()
        written.add_epoch(0, returns=(10, 14))
        written.add_epoch(1, returns=(20, 26))
        written.add_episodes(0, [0])
        watching, chromium = self.watch(written.folder), self.browser()
        page = chromium.open(f"http://{watching.address}/")
        page.wait(f"{POINTS}.length === 2")
        self.assertEqual(page.value("byId('violations').textContent"), "Violations by episode: 0 of 1 training episodes"
                         "cartpole/datacomNo training episode had a cost.")
        page.value("""window.canvas = document.querySelector('canvas'); byId('summary').open = document.querySelector('#summary details').open = true;
                      charts.get('eval_return').hide(2)""")
        written.add_epoch(2, returns=(30, 40))
        written.add_episodes(1, [3, 9])
        page.wait(f"{POINTS}.length === 3 && {ROWS} === 2")
        self.assertEqual(page.value(f"{POINTS}.map((point) => [point.x, point.y])"), [[0, 12], [1000, 23], [2000, 35]])
        self.assertTrue(page.value("""document.querySelector('canvas') === window.canvas && document.querySelector('#summary details').open &&
                                      !charts.get('eval_return').isDatasetVisible(2)"""))
        self.assertEqual(page.value("[...charts.keys()]"), ["eval_return", "eval_sum_cost"], "those of closed folds are not drawn")
        self.assertTrue(page.value("""(() => { const box = window.canvas, pixels = box.getContext('2d').getImageData(0, 0, box.width, box.height).data;
                                      return pixels.some((part) => part > 0); })()"""), "something is drawn")
        row = page.value("[...document.querySelectorAll('#violations tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))[0]")
        self.assertEqual(row, ["1", "2", "200", "4", "2.25", "9"])
        self.assertEqual(page.complaints(), [])

    def test_the_page_goes_on_when_the_command_is_started_again(self):
        written = self.written()
        written.add_epoch(0)
        watching, chromium = self.watch(written.folder), self.browser()
        page = chromium.open(f"http://{watching.address}/")
        page.wait("byId('connection').textContent === 'live' && state")
        self.assertEqual(watching.end(), 0)
        page.wait("byId('connection').textContent.startsWith('disconnected')")
        written.add_epoch(1)
        self.watch(written.folder, "--listen", watching.address)
        page.wait(f"byId('connection').textContent === 'live' && {POINTS}.length === 2")

    def test_text_from_files_is_no_markup(self):
        written = self.written("run", "--set", 'description="<img src=x onerror=alert(1)>"', "--set", 'name="a report"')
        written.add_epoch(0)
        watching, chromium = self.watch(written.folder), self.browser()
        page = chromium.open(f"http://{watching.address}/")
        page.wait("charts.size > 0")
        self.assertEqual(page.value("byId('subtitle').textContent"), "<img src=x onerror=alert(1)>")
        self.assertEqual(page.value("document.title"), "a report – datacom watch")
        self.assertEqual(page.value("document.images.length"), 0)
        self.assertEqual(page.complaints(), [])

    def test_the_policy_stops_scripts_and_requests_that_are_not_the_pages(self):
        watching, chromium = self.watch(self.written().folder), self.browser()
        page = chromium.open(f"http://{watching.address}/")
        page.wait("state")
        page.value("""{ const script = document.createElement('script'); script.textContent = 'window.foreign = true'; document.body.append(script);
                        const image = document.createElement('img'); image.src = 'http://127.0.0.1:9/'; document.body.append(image); }""")
        self.assertIs(page.value("window.foreign === undefined"), True)
        self.assertEqual(page.value("fetch('http://127.0.0.1:9/').catch(() => 'stopped')"), "stopped")
        said = [event["entry"]["text"] for event in page.complaints() if "entry" in event]
        for directive in ("script-src", "img-src", "connect-src"):
            self.assertTrue(any(directive in text for text in said), (directive, said))

    def test_pages_of_other_sites_and_other_names_of_this_machine_read_nothing(self):
        class OtherSite(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<title>other</title>")

            def log_message(self, *_):
                pass
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), OtherSite)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.ends.callback(other.server_close)
        self.ends.callback(other.shutdown)
        watching = self.watch(self.written().folder)
        port = watching.address.rsplit(":", 1)[1]
        chromium = self.browser("--host-resolver-rules=MAP *.example 127.0.0.1")
        page = chromium.open(f"http://site.example:{other.server_port}/")
        page.wait("document.title === 'other'")
        for path in ("", "events"):
            self.assertEqual(page.value(f"fetch('http://{watching.address}/{path}').then((answer) => answer.text()).catch(() => 'nothing')"), "nothing")
        refused = f"""new Promise((done) => {{ const source = new EventSource('http://{watching.address}/events');
                      source.onerror = () => done('nothing'); source.addEventListener('state', () => done('state')); }})"""
        self.assertEqual(page.value(refused), "nothing")
        rebound = chromium.open(f"http://rebound.example:{port}/")  # the browser now takes the page for one of this site
        rebound.wait("document.body.textContent.startsWith('Refused')")
        self.assertEqual(rebound.value("location.host"), f"rebound.example:{port}")
        self.assertEqual(rebound.value("fetch('/events').then((answer) => answer.status)"), 403)

    def test_a_report_draws_its_curves_maps_and_tables(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "2000").start()
        training.finish()
        page = self.browser().open("file://" + os.path.join(training.folder, "report.html"))
        page.wait("document.readyState === 'complete'")
        self.assertEqual(page.value(f"{POINTS_OF_J}.length"), 3)
        self.assertEqual(page.value("document.querySelectorAll('#maps .panels figure canvas').length > 0"), True)
        self.assertEqual(page.value("document.querySelectorAll('#verdicts .run, #summary > div > .wide').length"), 2)
        self.assertEqual(page.value("document.querySelectorAll('#details details').length"), 2)
        self.assertEqual(page.value("document.querySelector('.swatch').style.borderTopStyle"), "solid")
        self.assertEqual([url for url in page.requests() if not url.startswith("data:")], ["file://" + os.path.join(training.folder, "report.html")])
        self.assertEqual(page.complaints(), [])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
