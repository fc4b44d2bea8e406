# SPDX-License-Identifier: BSD-2-Clause
"""The browser for tests finds what is wrong with pages, and finds nothing wrong with a good one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from testing import browser as browsers
from testing import waiting
from testing.pictures import Gallery

if TYPE_CHECKING:
    from testing.browser import Browser

ROOT = Path(__file__).resolve().parents[2]
GOOD = """<!doctype html><html lang="en"><head><title>A page</title><link rel="icon" href="data:,"><style>
body { margin: 0; font: 16px sans-serif; background: #fff; color: #222 }
h1 { margin: 0; padding: 24px; background: #1b5e8c; color: #fff } p { padding: 24px; max-width: 40em }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
</style></head><body><main><h1>A page</h1><p>%s</p></main></body></html>"""
RUNS_FOR_EVER = """
import pathlib, signal, sys
from testing import browser
with browser.running(pathlib.Path(sys.argv[1])):
    print("runs", flush=True)
    signal.pause()
"""
TEXT = "One sentence after the other says nothing much. " * 12


def page(directory: Path, text: str = TEXT, style: str = "") -> str:
    path = directory / "page.html"
    path.write_text((GOOD % text).replace("</style>", f"{style}</style>"))
    return path.as_uri()


def test_a_good_page_has_no_faults(browser: Browser, tmp_path: Path) -> None:
    for width in (browsers.WIDE, browsers.NARROW):
        browser.show(width, dark=True)
        browser.open(page(tmp_path))
        assert browser.barriers() == []
    assert browser.faults() == []
    assert "One sentence" in browser.text("p")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("<script>console.error('spilt')</script>", "spilt"),
        ("<script>undefinedFunction()</script>", "undefinedFunction"),
        (
            "<meta http-equiv=Content-Security-Policy content='img-src none'><img alt=x src=data:image/png;base64,AA>",
            "Content Security Policy",
        ),
        ("<img alt=x src=http://192.0.2.1/x.png>", "request to http://192.0.2.1/x.png"),
        (
            "<script>fetch('https://example.org/beacon', {mode: 'no-cors'}).catch(() => {})</script>",
            "request to https://example.org/beacon",
        ),
        ("<script>new WebSocket('ws://example.org/')</script>", "request to ws://example.org/"),
    ],
    ids=["error", "exception", "policy", "picture", "fetch", "socket"],
)
def test_faults_of_a_page_are_found(tmp_path: Path, text: str, fault: str) -> None:
    found = ""

    def is_found() -> bool:
        nonlocal found
        found += "\n".join(browser.faults())
        return fault in found

    with browsers.running(tmp_path) as browser:
        browser.open(page(tmp_path, text))
        waiting.until(is_found, "the fault is reported")


@pytest.mark.parametrize(
    ("text", "style", "barrier"),
    [
        ("<img src=data:,>", "", "image-alt"),
        ("pale", "p { color: #ccc }", "color-contrast"),
        ("<input>", "", "label"),
        ("far to the right", "p { width: 3000px; max-width: none }", "cut off: p."),
        ("long" * 500, "", "cut off: the page is"),
    ],
    ids=["picture", "contrast", "field", "width", "word"],
)
def test_barriers_of_a_page_are_found(browser: Browser, tmp_path: Path, text: str, style: str, barrier: str) -> None:
    browser.open(page(tmp_path, text, style))
    assert barrier in "\n".join(browser.barriers())


def test_pictures_differ_when_the_page_does(browser: Browser, tmp_path: Path) -> None:
    gallery = Gallery(tmp_path / "pictures", tmp_path, rewrite=False)
    browser.open(page(tmp_path))
    with pytest.raises(AssertionError, match="there is no picture"):
        gallery.compare(browser, "page", "h1", "p")
    Gallery(tmp_path / "pictures", tmp_path, rewrite=True).compare(browser, "page", "h1", "p")

    gallery.compare(browser, "page", "h1", "p")
    browser.open(page(tmp_path, style="body { font: 16px serif }"))  # as on a machine with other fonts
    gallery.compare(browser, "page", "h1", "p")

    for style in ("h1 { display: none }", "p { margin-left: 400px }", "h1 { background: none; color: #222 }"):
        browser.open(page(tmp_path, style=style))
        with pytest.raises(AssertionError, match="differs from"):
            gallery.compare(browser, "page", "h1", "p")
    browser.show(dark=True)
    browser.open(page(tmp_path))
    with pytest.raises(AssertionError, match="mean difference of colours"):
        gallery.compare(browser, "page", "h1", "p")
    with pytest.raises(AssertionError, match="not on the page"):
        gallery.compare(browser, "page", "h2")


def test_a_killed_test_leaves_no_process(tmp_path: Path) -> None:
    test = subprocess.Popen(
        [sys.executable, "-c", RUNS_FOR_EVER, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert test.stdout
    assert test.stdout.readline() == "runs\n"
    assert len(using(tmp_path)) > 3
    os.kill(test.pid, signal.SIGKILL)
    test.wait()
    test.stdout.close()
    waiting.until(lambda: not using(tmp_path), "all processes of the browser have ended")


def using(directory: Path) -> list[str]:
    """Return the command lines of processes other than this that name the directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = process.read_bytes().decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if str(directory) in command and process.parent.name != str(os.getpid()):
            found.append(command)
    return found
