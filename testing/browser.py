# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium for tests of pages: what a person sees, reads with a screen reader, and types.

Whatever a page does wrong by itself fails the test that opened it: an error on the console, a violated content security
policy, a request that leaves this machine. Chromium runs in a PID namespace of its own, so that none of its processes
outlives the test.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from testing import waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from selenium.webdriver.remote.webelement import WebElement

WIDE, NARROW = 1280, 360
"""Widths of a window, in pixels of CSS: a small laptop's, a small telephone's."""

_AXE = Path(__file__).resolve().parents[1] / "dashboards/web/node_modules/axe-core/axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--lang=en-GB",
    "--force-color-profile=srgb",
    # Names of other hosts do not even resolve.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE *.localhost, EXCLUDE 127.0.0.1",
)  # fmt: skip
_WITHIN = ("data", "blob", "about", "file", "chrome", "devtools")
"""Schemes of what needs no network."""

# The text of elements that lie partly outside of the window and that nothing lets a person scroll to, and whether the
# page as a whole has to be scrolled to the right: a word that is too long makes no element wider.
_CUT_OFF = """
const width = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > width)
  found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
const scrolls = e => e && (/(auto|scroll|hidden)/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
for (const e of document.body.querySelectorAll("*")) {
  const box = e.getBoundingClientRect();
  if (box.width > 0 && box.height > 0 && (box.right > width + 1 || box.left < -1) && !scrolls(e.parentElement)
      && getComputedStyle(e).position !== "fixed" && !e.closest("[data-offscreen]"))
    found.push(`${e.tagName.toLowerCase()}.${e.className}: ${(e.textContent || "").slice(0, 60)}`);
}
return found;
"""


class _Service(ChromeService):
    """Runs chromedriver as the first process of a PID namespace, which ends with this process at the latest."""

    def __init__(self, log: Path) -> None:
        super().__init__(executable_path=_program("setpriv"), log_output=str(log))

    def command_line_args(self) -> list[str]:
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", _program("chromedriver")]
        return ["--pdeathsig", "KILL", *inside, *super().command_line_args()]


def _program(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is not installed; run make setup"
    return path


class Browser:
    """One window. ``driver`` is Selenium's, for everything that has no method here."""

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver
        self._expected: list[str] = []
        self.show()

    def show(self, width: int = WIDE, *, height: int = 800, dark: bool = False) -> None:
        """Show pages in a window of this size, to a person who prefers light or dark."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        self.driver.get(url)

    def one(self, selector: str) -> WebElement:
        """Return the element of a CSS selector as soon as a person can see it."""
        return waiting.until(lambda: self._visible(selector), f"{selector} is visible on {self.driver.current_url}")  # type: ignore[no-any-return]

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of a CSS selector that are there now."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def _visible(self, selector: str) -> WebElement | None:
        return next((found for found in self.all(selector) if found.is_displayed()), None)

    def text(self, selector: str = "body") -> str:
        """Return what a person reads in an element."""
        return self.one(selector).text

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def script(self, code: str, *arguments: Any) -> Any:
        """Run JavaScript in the page, whose policy does not apply to it, and return what it returns."""
        return self.driver.execute_script(code, *arguments)

    def barriers(self) -> list[str]:
        """Return what keeps people from using the page: findings of axe-core, and text that is cut off."""
        assert _AXE.is_file(), f"{_AXE} is missing; run make dashboards/web/node_modules/.package-lock.json"
        self.script(_AXE.read_text())
        found = self.driver.execute_async_script(
            "const [rules, done] = arguments;"
            "axe.run(document, {runOnly: rules}).then(done, error => done({error: String(error)}));",
            _RULES,
        )
        assert "error" not in found, found["error"]
        assert found["passes"], "axe-core has examined nothing"
        return [
            f"{finding['id']}: {finding['help']}: {node['html'][:200]} ({node['failureSummary']})"
            for finding in found["violations"]
            for node in finding["nodes"]
        ] + [f"cut off: {text}" for text in self.script(_CUT_OFF)]

    def picture(self, height: int | None = None) -> bytes:
        """Return a picture (PNG) of the whole page, beyond the window's lower edge, or of its uppermost part."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        taken = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
        return base64.b64decode(taken["data"])

    def printed(self) -> bytes:
        """Return the page as it is printed on A4 (PDF)."""
        made = self.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
        return base64.b64decode(made["data"])

    def expect(self, text: str) -> None:
        """Let faults with this text pass: the test provokes them."""
        self._expected.append(text)

    def faults(self) -> list[str]:
        """Return what pages did wrong since the last call: on the console, and beyond this machine."""
        console = [
            str(entry["message"])
            for entry in self.driver.get_log("browser")  # type: ignore[no-untyped-call]
            if entry["level"] == "SEVERE"
        ]
        found = [f"console: {line}" for line in console]
        found += [f"request to {url}" for url in self._requested() if not _is_local(url)]
        return [fault for fault in found if not any(text in fault for text in self._expected)]

    def _requested(self) -> Iterator[str]:
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                yield message["params"]["request"]["url"]
            elif message["method"] == "Network.webSocketCreated":
                yield message["params"]["url"]


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    return parts.scheme in _WITHIN or host in {"127.0.0.1", "::1"} or host.rpartition(".")[2] == "localhost"


@contextlib.contextmanager
def running(directory: Path) -> Iterator[Browser]:
    """Yield a new browser, with its profile and its log in ``directory``; its processes have ended at the end."""
    options = ChromeOptions()
    options.binary_location = _program("chromium")
    for flag in (*_FLAGS, f"--user-data-dir={directory / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.set_capability("goog:perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    driver = Chrome(options=options, service=_Service(directory / "chromedriver.log"))
    try:
        driver.set_script_timeout(60)
        yield Browser(driver)
    finally:
        driver.quit()
