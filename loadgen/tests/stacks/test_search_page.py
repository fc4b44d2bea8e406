# SPDX-License-Identifier: BSD-2-Clause
"""Sys-E's search page, as its users see it: Chromium, the real front end and monitor, and the light search engine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.keys import Keys

from loadgen.datasets import crowd
from loadgen.tests.light_stack import running
from testing import waiting
from testing.browser import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.stacks.stack import Stack
    from testing.browser import Browser
    from testing.pictures import Gallery

ME, FORMER_FRIEND, STRANGER = "user00000", "user00001", "user00012"


@pytest.fixture
def stack() -> Iterator[Stack]:
    with running(revocation="immediate") as (stack, _):
        yield stack


def log_in(browser: Browser, name: str, seed: str) -> None:
    """Log in as a user does, by the keyboard."""
    browser.one("#principal").clear()
    browser.one("#key").clear()
    browser.one("#principal").click()
    browser.press(name, Keys.TAB, seed, Keys.ENTER)


def search_until(browser: Browser, found: Callable[[], bool], what: str) -> None:
    """Search again and again: the light engine answers with random documents that its user may read."""

    def searched() -> bool:
        browser.one("#q").clear()
        browser.one("#q").send_keys(crowd.QUERY, Keys.ENTER)
        waiting.until(lambda: "for " + ME in browser.text("#summary"), "the results are shown")
        everything_may_be_seen(browser)
        return found()

    waiting.until(searched, what)


def titles(browser: Browser) -> list[str]:
    """Return the titles of the results at one moment; those of these documents are their names."""
    found = browser.script("return [...document.querySelectorAll('.result h2')].map(title => title.textContent)")
    return [str(title) for title in found]


def everything_may_be_seen(browser: Browser) -> None:
    """Check that no result is private to another user, or of one who is no friend."""
    for title in titles(browser):
        assert STRANGER not in title
        assert not title.startswith("private/") or title == f"private/{ME}/1.txt"


@pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")
def test_a_user_finds_what_is_theirs(stack: Stack, browser: Browser, gallery: Gallery) -> None:
    browser.open(stack.front_end.url)
    for name, width, dark in (
        ("login-light", WIDE, False),
        ("login-dark", WIDE, True),
        ("login-narrow", NARROW, False),
    ):
        browser.show(width, dark=dark)
        assert browser.barriers() == []
        gallery.compare(browser, name, "header", "#login-title", "#login", "#principal", "#login-button")
    browser.show()

    browser.expect("403")
    log_in(browser, ME, crowd.seed(STRANGER).hex())
    assert "refused" in browser.text("#problem")

    log_in(browser, ME, crowd.seed(ME).hex())
    waiting.until(lambda: ME in browser.text("#who-text"), "the user is logged in", 10)
    assert not browser.all("#problem:not([hidden])")
    search_until(browser, lambda: f"private/{ME}/1.txt" in titles(browser), "the own private document is found")
    search_until(browser, lambda: f"friends/{FORMER_FRIEND}/1.txt" in titles(browser), "a friend's document is found")
    for width, dark in ((WIDE, False), (WIDE, True), (NARROW, False)):
        browser.show(width, dark=dark)
        assert browser.barriers() == []
    browser.show()

    stack.monitor.call("facts", "remove", f"friends/{FORMER_FRIEND}", "friend", ME)
    # The revocation ends the session, and the page logs in again. The engine asks the profile, which has the friend.
    browser.expect("401")
    search_until(browser, lambda: "withheld" in browser.text("#summary"), "a former friend's document is withheld")
    assert f"friends/{FORMER_FRIEND}/1.txt" not in titles(browser)
    assert browser.barriers() == []

    browser.one("#logout").click()
    assert browser.one("#login")
    assert not browser.all(".result")
    browser.driver.refresh()
    assert browser.one("#login"), "a reload does not log in again"
