"""A headless Chromium, driven over pipes by its own protocol (Chrome DevTools)."""

import json
import os
import select
import shutil
import subprocess
import sys
import time
from base64 import b64decode
from contextlib import contextmanager, suppress

SECONDS = 60  # only ends what hangs
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
FLAGS += ["--no-first-run", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--hide-scrollbars", "--remote-debugging-pipe"]
# Chromium reads from file 3 and writes to file 4.
START = """
import os, sys
reading, writing = (os.dup(int(number)) for number in sys.argv[1:3])
writing = os.dup(writing) if writing == 3 else writing
os.dup2(reading, 3)
os.dup2(writing, 4)
os.set_inheritable(3, True)
os.set_inheritable(4, True)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium():
    """Return the path of a Chromium, or None."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def browser(folder):
    """Yield a tab of a Chromium that keeps its files in a folder."""
    here_read, there_write = os.pipe()
    there_read, here_write = os.pipe()
    arguments = [chromium(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(there_read), str(there_write), *arguments],
        pass_fds=(there_read, there_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there_read)
    os.close(there_write)
    try:
        yield Tab(here_read, here_write)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(here_read)
        os.close(here_write)


class Tab:
    """A tab: what was loaded, and what it complained about, is in `events`."""

    def __init__(self, reading, writing):
        self.reading, self.writing = reading, writing
        self.buffer, self.count, self.session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Call a method of the protocol and return its result."""
        self.count += 1
        number = self.count
        message = {"id": number, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    def receive(self):
        """Return the next message; keep it in `events` if it is an event."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reading], [], [], max(0.0, end - time.monotonic()))
            assert ready, "Chromium does not answer"
            piece = os.read(self.reading, 1 << 20)
            assert piece, "Chromium has ended"
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def open(self, address):
        """Load a page, and wait until it and its formulas are complete."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.receive()
        self.run("window.MathJax?.startup?.promise?.then(() => true) ?? true")

    def run(self, script):
        """Return the value of an expression in the page."""
        result = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script):
        """Wait until an expression is true, and return it."""
        end = time.monotonic() + SECONDS
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"still not true: {script}"
            time.sleep(0.05)
        return value

    def resize(self, width, height):
        """Show pages as on a screen of this size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def screenshot(self, path):
        """Save what is visible as PNG."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot")["data"]))

    def complaints(self):
        """Return errors and warnings of the page: scripts, console, failed requests."""
        found = []
        for event in self.events:
            about = event.get("params", {})
            match event["method"]:
                case "Runtime.exceptionThrown":
                    found.append(about["exceptionDetails"]["text"])
                case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning", "assert"):
                    found.append(str([value.get("value") for value in about["args"]]))
                case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                    found.append(about["entry"]["text"] + " " + about["entry"].get("url", ""))
        return found

    def requests(self):
        """Return the addresses that the page asked for."""
        events = self.events
        sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]
