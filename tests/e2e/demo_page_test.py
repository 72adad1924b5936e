"""Opens `datacom demo`, and a film that is a page, in a headless Chromium."""
import os
import re
import signal
import subprocess
import unittest

from running import BIN, RunTest  # also makes tests/testing importable

import browser

DATACOM = os.path.join(BIN, "datacom")
# How many colours a canvas has: a picture has many, an empty one has one.
COLOURS = """(() => {{ const canvas = document.querySelector({!r}), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set(); for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]); return seen.size; }})()"""
WIDER = "[...document.querySelectorAll('body *')].filter((one) => !one.closest('table') && one.getBoundingClientRect().right > innerWidth + 0.5).map((one) => one.outerHTML)"


@unittest.skipUnless(browser.CHROMIUM, "Chromium is not installed (apt-get install chromium)")
class DemoPageTest(RunTest):
    def setUp(self):
        super().setUp()
        self.demo = subprocess.Popen([DATACOM, "demo", "--no-browser"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.demo.stdout.close)
        self.addCleanup(self.demo.wait)
        self.addCleanup(self.demo.send_signal, signal.SIGINT)
        self.url = re.fullmatch(r"demo: (http://127\.0\.0\.1:\d+/) shows the shipped policies until Ctrl-C\n", self.demo.stdout.readline())[1]

    def test_it_plays_both_agents_and_the_keys_work(self):
        with browser.Browser() as chromium:
            page = chromium.open(self.url)
            page.wait("document.querySelectorAll('.panel').length === 2 && [...document.querySelectorAll('.state')].every((one) => parseFloat(one.textContent) > 0.3)")
            self.assertEqual(page.value("[...document.querySelectorAll('.who')].map((one) => one.selectedOptions[0].textContent)"),
                             ["SAC", "D-ATACOM, learned from violations"])
            self.assertGreater(page.value(COLOURS.format(".view canvas")), 20)
            self.assertEqual(page.value("[...document.querySelectorAll('.shield')].map((one) => one.hidden)"), [True, False])
            key = "document.dispatchEvent(new KeyboardEvent('keydown', {{ key: {!r} }}))"
            page.value(key.format(" "))
            self.assertEqual(page.value("document.getElementById('play').textContent"), "Play")
            page.value(key.format("s"))
            self.assertEqual(page.value("document.querySelectorAll('.on')[1].checked"), False)
            page.value(key.format("s"))
            page.value(key.format("2"))
            page.wait("document.getElementById('title').textContent.startsWith('CartPole')")
            page.value(key.format(" "))
            page.wait("document.querySelectorAll('.inset')[1].hidden === false && parseFloat(document.querySelector('.state').textContent) > 0")
            self.assertGreater(page.value(COLOURS.format(".panel:nth-child(2) .inset")), 10)
            self.assertIn("idle in this episode", page.value("document.querySelectorAll('.state')[1].textContent"))
            page.value(key.format("3"))  # a single agent: without its shield and with it
            page.wait("document.querySelectorAll('.shield').length === 2 && !document.querySelectorAll('.on')[0].checked")
            for width in (1280, 400):
                page.resize(width, 900)
                self.assertEqual(page.value(WIDER), [], width)
            self.assertEqual(chromium.open("about:blank").complaints(), [])
            self.assertEqual([url for url in page.requests() if not url.startswith((self.url, "about:"))], [])

    def test_a_switch_that_has_the_focus_is_switched_by_the_keyboard(self):
        with browser.Browser() as chromium:
            page = chromium.open(self.url)
            page.wait("document.querySelectorAll('.panel').length === 2 && parseFloat(document.querySelector('.state').textContent) > 0")
            for switch, checked in ((".panel:nth-child(2) .on", False), ("#maps", False), ("#maps", True)):
                page.value(f"document.querySelector('{switch}').focus()")
                page.press(" ", "Space")
                self.assertEqual(page.value(f"document.querySelector('{switch}').checked"), checked, switch)
                self.assertEqual(page.value("document.getElementById('play').textContent"), "Pause")
            page.value("document.activeElement.blur()")
            page.press(" ", "Space")
            self.assertEqual(page.value("document.getElementById('play').textContent"), "Play")

    def test_an_episode_that_has_ended_is_counted_and_the_next_one_begins(self):
        with browser.Browser() as chromium:
            page = chromium.open(self.url)
            page.value("new Promise((done) => { const wait = () => document.getElementById('speed') ? done() : setTimeout(wait, 20); wait(); })")
            page.value("document.getElementById('speed').options[2].value = '40', document.getElementById('speed').selectedIndex = 2")
            page.wait("document.querySelectorAll('#totals tr').length === 2 && Number(document.querySelector('#totals td:nth-child(3)').textContent) > 1")

    def test_a_film_is_one_page(self):
        film = os.path.join(self.folder, "episode.html")
        said = subprocess.run([DATACOM, "render", "shipped:cartpole/from_scratch", "--out", film, "--step", "120"], check=True, text=True, stdout=subprocess.PIPE).stdout
        self.assertRegex(said, r"episode\.html: \d+ frames of 1000 steps; open it in a browser")
        with browser.Browser() as chromium:
            page = chromium.open("file://" + film)
            page.wait("document.getElementById('numbers').textContent.startsWith('step ')")
            page.value("document.getElementById('time').value = document.getElementById('time').max, document.getElementById('time').oninput()")
            self.assertRegex(page.value("document.getElementById('numbers').textContent"), r"step 120 of 120 .*\nCVaR .* k -")
            page.value("document.getElementById('play').click(), go(3), document.getElementById('speed').focus()")
            steps = [page.value("parseInt(document.getElementById('numbers').textContent.slice(5))")]
            for blur in ("0", "document.activeElement.blur()"):  # at first the key belongs to the choice of speeds
                page.value(blur)
                page.press("ArrowRight", "ArrowRight")
                steps.append(page.value("parseInt(document.getElementById('numbers').textContent.slice(5))"))
            self.assertEqual((steps[1], steps[2] > steps[1]), (steps[0], True), steps)
            for canvas in ("#view", "#curves"):
                self.assertGreater(page.value(COLOURS.format(canvas)), 5)
            self.assertEqual(page.complaints(), [])
            self.assertEqual([url for url in page.requests() if not url.startswith(("file://" + film, "about:", "data:"))], [])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0
