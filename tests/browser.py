"""A headless Chromium driven through its DevTools pipe; needs nothing but the browser itself."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

EXECUTABLE = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# The least contrast between a text and what lies behind it.
CONTRAST = """(() => {
    const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const linear = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const light = (colour) => {
        const [r, g, b] = parse(colour).map((v) => linear(v / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (e) => {
        for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (parse(colour)[3] !== 0) return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const tags = "p, h1, h2, h3, td, th, dt, dd, li, button, code, pre, figcaption, footer, math, .badge";
    const ratios = [...document.querySelectorAll(tags)]
        .filter((e) => e.textContent.trim() && e.id !== "toast")
        .map((e) => [light(getComputedStyle(e).color), light(behind(e))].sort((p, q) => q - p))
        .map(([a, b]) => (a + 0.05) / (b + 0.05));
    return Math.min(...ratios);
})()"""


class Browser:
    """One page; `errors` collects what goes to its console and `requests` what it asks for."""

    def __init__(self, profile):
        options = [
            "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={profile}",
        ]  # fmt: skip
        # The browser reads commands from file 3 and answers on file 4.
        wired = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
        self.process = subprocess.Popen(
            ["sh", "-c", wired, "sh", EXECUTABLE, *options, "about:blank"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.buffer, self.count, self.session = b"", 0, None
        self.errors, self.requests, self.loaded = [], [], False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(60)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.buffer:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                raise RuntimeError("the browser has gone")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params"))
        return message

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            self.errors.append(
                params["exceptionDetails"].get("exception", {}).get("description", "an exception")
            )
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"dialog: {params['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, path, width=1200, height=900):
        self.visit(path.resolve().as_uri(), width, height)

    def visit(self, url, width=1200, height=900):
        self.resize(width, height)
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self._next(60)
        self.settle()

    def until(self, script, seconds=60):
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({script})"):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {script}")
            time.sleep(0.05)

    def settle(self):
        """Waits until two frames are drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def resize(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, medium="", **features):
        values = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.call("Emulation.setEmulatedMedia", media=medium, features=values)
        self.settle()

    def run(self, script):
        """The value of a JavaScript expression, promises awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def place(self, selector):
        """The middle of an element, scrolled into view."""
        self.run(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'center'}})")
        self.settle()
        box = f"document.querySelector({json.dumps(selector)}).getBoundingClientRect()"
        return self.run(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")

    def point(self, selector):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector):
        x, y = self.place(selector)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)
        self.settle()

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)
        self.settle()

    def screenshot(self, path, whole=True):
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
