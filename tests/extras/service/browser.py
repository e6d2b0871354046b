"""Headless Chromium by the W3C WebDriver protocol, which is plain HTTP with JSON: no further package, no download."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip

CONTROL, ENTER, TAB, ESCAPE = "\ue009", "\ue007", "\ue004", "\ue00c"
LEFT, UP, RIGHT, DOWN, HOME, END = "\ue012", "\ue013", "\ue014", "\ue015", "\ue011", "\ue010"

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """One window."""

    def __init__(self, client: httpx.Client, session: str) -> None:
        self._client, self._session = client, session

    def _ask(self, method: str, path: str, **body: Any) -> Any:
        json = body if method == "POST" else None
        answer = self._client.request(method, f"/session/{self._session}/{path}", json=json).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise AssertionError(f"{answer['error']}: {answer['message']}")
        return answer

    def open(self, url: str) -> None:
        self._ask("POST", "url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """Runs a script and returns its result."""
        return self._ask("POST", "execute/sync", script=script, args=list(arguments))

    def until(self, script: str, *arguments: Any) -> Any:
        """Runs a script until its result is true, and returns it."""
        for _ in range(400):
            if found := self.run(script, *arguments):
                return found
            time.sleep(0.05)
        raise AssertionError(f"not true within 20 s: {script}")

    def type(self, selector: str, text: str) -> None:
        """Types into an element."""
        self._ask("POST", f"element/{self._find(selector)}/value", text=text)

    def press(self, *keys: str) -> None:
        """Presses keys together, wherever the focus is."""
        down = [{"type": "keyDown", "value": key} for key in keys]
        up = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self._ask("POST", "actions", actions=[{"type": "key", "id": "keys", "actions": down + up}])

    def point(self, selector: str) -> None:
        """Moves the mouse to an element."""
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": {_ELEMENT: self._find(selector)}}
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [move]}
        self._ask("POST", "actions", actions=[mouse])

    def click(self, selector: str) -> None:
        """Clicks on an element."""
        self._ask("POST", f"element/{self._find(selector)}/click")

    def resize(self, width: int, height: int = 900, *, mobile: bool = False) -> None:
        """Gives the window a size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.emulate("Emulation.setDeviceMetricsOverride", **size)

    def darken(self, dark: bool) -> None:
        """Prefers dark pages, or light ones."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.emulate("Emulation.setEmulatedMedia", features=[scheme])

    def reset(self) -> None:
        """Makes it a light window of a usual size, without messages of pages before."""
        self.resize(1000)
        self.darken(False)
        self.complaints()

    def texts(self, selector: str) -> list[str]:
        """Returns the text of each element."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
        found: list[str] = self.run(script, selector)
        return found

    def emulate(self, command: str, **parameters: Any) -> None:
        """A command of the Chrome DevTools protocol."""
        self._ask("POST", "goog/cdp/execute", cmd=command, params=parameters)

    def screenshot(self, path: Path) -> None:
        """Writes a picture of what is in the window, as PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "screenshot")))

    def complaints(self) -> list[str]:
        """Returns the browser's messages about faults on pages since the last call."""
        return [each["message"] for each in self._ask("POST", "se/log", type="browser") if each["level"] != "INFO"]

    def _find(self, selector: str) -> str:
        element: str = self._ask("POST", "element", using="css selector", value=selector)[_ELEMENT]
        return element


def started(environment: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Starts the driver of the browser; returns it and its port. It takes a port that is free for IPv4, which another
    process may have for IPv6, and then it ends."""
    for _ in range(5):
        command = [str(CHROMEDRIVER), "--port=0"]
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert driver.stdout is not None
        for line in driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                return driver, found[1]
        driver.communicate()
    raise RuntimeError(f"{CHROMEDRIVER} finds no port")


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in ``folder``."""
    driver, port = started({**os.environ, "HOME": str(folder)})
    with driver:
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={folder / 'profile'}"]}
                wanted = {
                    "browserName": "chrome",
                    "goog:chromeOptions": options,
                    "goog:loggingPrefs": {"browser": "ALL"},
                }
                made = client.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
                assert "sessionId" in made, made
                try:
                    yield Browser(client, made["sessionId"])
                finally:  # also after a failed test, or Chromium would go on without its driver
                    client.delete(f"/session/{made['sessionId']}")
        finally:
            driver.terminate()


@pytest.fixture(scope="session")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("no Chromium here (Debian: apt install chromium chromium-driver)")
    with browsing(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def browser(window: Browser) -> Browser:
    window.reset()
    return window
