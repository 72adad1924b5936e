"""Drives a headless Chromium through its debugging pipe: opens a page, evaluates expressions in it, records what it loads and complains about.

Single-threaded. Use as a context manager.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from patience import PATIENCE

CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--remote-debugging-pipe", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars", "--window-size=1300,1600"]


class Browser:
    def __init__(self, *flags):
        self._profile = tempfile.mkdtemp(prefix="datacom-chromium-")
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        root = ["--no-sandbox"] if os.getuid() == 0 else []
        command = [CHROMIUM, *FLAGS, *root, *flags, "--user-data-dir=" + self._profile]
        self._process = subprocess.Popen(["bash", "-c", f'exec "$@" 3<&{there} 4>&{back}', "bash", *command], pass_fds=(there, back),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(there)
        os.close(back)
        self._received, self._number = b"", 0
        self.events = []  # (method, parameters) of all pages

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._write)  # ends Chromium
        os.close(self._read)
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, deadline):
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("Chromium " + ("has ended" if ready else "does not answer"))
            self._received += data
        text, self._received = self._received.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a command of the DevTools protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._message(deadline)
            if "method" in answer:
                self.events.append((answer["method"], answer["params"]))
                if answer["method"] == "Inspector.targetCrashed":
                    raise RuntimeError("the page has crashed")
            elif answer["id"] == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, url):
        return Page(self, url)


class Page:
    def __init__(self, browser, url):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Inspector", "Page", "Runtime", "Network", "Log"):
            self._call(part + ".enable")
        self._call("Page.navigate", url=url)

    def _call(self, method, **parameters):
        return self._browser.call(method, self._session, **parameters)

    def value(self, expression):
        """The value of an expression, or of its promise."""
        result = self._call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, shown="document.title"):
        """Waits until an expression is true in the page, which the page checks again and again. After half of PATIENCE the error has the
        value of `shown`."""
        check = (f"const check = () => {{ try {{ if ({condition}) return done(true); }} catch {{}}"
                 f" if (performance.now() < end) setTimeout(check, 20); else failed(JSON.stringify({shown})); }};")
        self.value(f"new Promise((done, failed) => {{ const end = performance.now() + {500 * PATIENCE}; {check} check(); }})")

    def press(self, key, code):
        """Presses a key of the keyboard and lets it go; what has the focus gets it."""
        named = {"key": key, "code": code, "windowsVirtualKeyCode": {" ": 32, "ArrowRight": 39}[key]}
        self._call("Input.dispatchKeyEvent", type="keyDown", text=key if len(key) == 1 else "", **named)
        self._call("Input.dispatchKeyEvent", type="keyUp", **named)

    def resize(self, width, height):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def requests(self):
        """The URLs that pages have asked for."""
        self.value("0")  # all events until now
        return [event["request"]["url"] for method, event in self._browser.events if method == "Network.requestWillBeSent"]

    def complaints(self):
        """Errors and messages in the consoles of pages."""
        self.value("0")
        return [event for method, event in self._browser.events
                if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")]
# SPDX-License-Identifier: Apache-2.0
