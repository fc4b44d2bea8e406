# SPDX-License-Identifier: BSD-2-Clause
"""An owner makes a document private on Sys-E's page, and gives it back: Chromium, the real front end and monitor."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from selenium.webdriver.common.keys import Keys

from loadgen.datasets import crowd, population
from loadgen.driving.protocol import ProtocolError, RefusedError, Session
from loadgen.tests.harness import ROOT
from loadgen.tests.light_stack import running
from loadgen.tests.stacks.test_search_page import log_in, search_until, titles
from testing import waiting
from testing.browser import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from loadgen.stacks.stack import Stack
    from testing.browser import Browser
    from testing.pictures import Gallery

PATCH = ROOT / "crds/examples/choices/syse.yaml"
OWNER, FRIEND = "user00000", "user00001"
TITLE, PATH = f"friends/{OWNER}/1.txt", f"/corpus/friends/{OWNER}/1.txt"
PRIVATE, FRIENDS = f'private(owner: "{OWNER}")', f'friends(owner: "{OWNER}")'
OPENER, ANSWER = f"[aria-label='Who may read it: {TITLE}']", ".policy .answers button"
ALL = 64

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="tasks run as users of their own, which needs root")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Stack, Path]]:
    with running(patch=PATCH) as found:
        yield found


@contextlib.contextmanager
def session(served: tuple[Stack, Path], name: str) -> Iterator[Session]:
    stack, data = served
    opened = Session(stack.front_end)
    with contextlib.closing(opened):
        opened.login(population.load(data)[name])
        yield opened


def finds(served: tuple[Stack, Path], name: str) -> tuple[dict[str, int], int]:
    """Return all that a user's new session finds, by title, and how much is withheld from it."""
    with session(served, name) as opened:
        answer = opened.search(crowd.QUERY, ALL)
    return {str(found["title"]): int(found["id"]) for found in answer["results"]}, int(answer["withheld"])


def choice(policy: str, nonce: str, *, by: str = OWNER, key: str = OWNER, path: str = PATH) -> bytes:
    """Return the body of a choice that is signed with somebody's key."""
    quoted = (json.dumps(text, ensure_ascii=False) for text in ("syse", by, path, policy))
    text = "\n".join(["shai-policy-v1", *quoted, nonce])
    signature = Ed25519PrivateKey.from_private_bytes(crowd.seed(key)).sign(text.encode()).hex()
    return json.dumps({"policy": policy, "signature": signature}).encode()


def in_force(served: tuple[Stack, Path], number: int) -> dict[str, Any]:
    with session(served, OWNER) as owner:
        return owner.exchange("GET", f"/policy?id={number}")


def enter(browser: Browser, stack: Stack) -> None:
    """Log the owner in and find the document; only it stays on the page, because the others are random."""
    browser.open(stack.front_end.url)
    log_in(browser, OWNER, crowd.seed(OWNER).hex())
    waiting.until(lambda: OWNER in browser.text("#who-text"), "the user is logged in", 10)
    search_until(browser, lambda: TITLE in titles(browser), "the owner's document is found")
    browser.script(
        "document.querySelectorAll('.result').forEach(one => {"
        "  if (one.querySelector('h2').textContent !== arguments[0]) one.remove(); })",
        TITLE,
    )


def press(browser: Browser, selector: str, told: str) -> None:
    """Press a button by the keyboard, and wait until the page has said something and can be used again."""
    browser.script("arguments[0].focus()", browser.one(selector))
    browser.press(Keys.ENTER)
    waiting.until(lambda: told in browser.text(".policy") and browser.one(OPENER).is_enabled(), f"it says: {told}", 10)


def test_an_owner_makes_a_document_private_and_gives_it_back(
    served: tuple[Stack, Path], browser: Browser, gallery: Gallery
) -> None:
    found, withheld = finds(served, FRIEND)
    assert (TITLE in found, withheld) == (True, 0)
    number = found[TITLE]
    enter(browser, served[0])
    assert not browser.all(".policy:not([hidden])")
    press(browser, OPENER, "you and your friends may read it")
    assert browser.text(".policy code") == PATH, "who signs sees for what"
    assert browser.text(ANSWER) == "Make private"
    for name, width, dark in (
        ("choosing-light", WIDE, False),
        ("choosing-dark", WIDE, True),
        ("choosing-narrow", NARROW, False),
    ):
        browser.show(width, dark=dark)
        assert browser.barriers() == []
        gallery.compare(browser, name, "header", ".result", ".choosing button", ".policy", ANSWER)
    browser.show()

    press(browser, ANSWER, "Done: only you may read it.")
    assert browser.one(".policy [role=status]").text == "Done: only you may read it."
    assert browser.barriers() == []
    assert in_force(served, number)["policy"] == PRIVATE
    found, withheld = finds(served, FRIEND)
    assert (TITLE in found, withheld) == (False, 1), "a friend finds it although it is private"
    assert TITLE in finds(served, OWNER)[0]

    assert browser.text(ANSWER) == "Give back to friends"
    assert browser.script("return document.activeElement === arguments[0]", browser.one(ANSWER))
    browser.press(Keys.ENTER)
    waiting.until(lambda: "Done: you and your friends" in browser.text(".policy"), "it is given back", 10)
    found, withheld = finds(served, FRIEND)
    assert (TITLE in found, withheld) == (True, 0)


def test_nobody_else_chooses(served: tuple[Stack, Path]) -> None:
    number = finds(served, FRIEND)[0][TITLE]
    offer = in_force(served, number)
    assert (offer["conduit"], offer["policy"], offer["choices"]) == (PATH, FRIENDS, [PRIVATE, FRIENDS])
    good = choice(PRIVATE, offer["nonce"])
    refused = [
        (FRIEND, choice(PRIVATE, offer["nonce"], by=FRIEND, key=FRIEND)),
        (FRIEND, good),  # the owner's own signature, in another one's session
        (OWNER, choice(PRIVATE, offer["nonce"], key=FRIEND)),
        (OWNER, choice(PRIVATE, "0" * 64)),
        (OWNER, choice("public()", offer["nonce"])),
    ]
    for name, body in refused:
        with session(served, name) as opened, pytest.raises(RefusedError):
            opened.exchange("POST", f"/policy?id={number}", body)
    absent, answers = 10**6, []
    for wanted in (number, absent):  # nothing to choose is not told from nothing there
        with session(served, FRIEND) as opened, pytest.raises(RefusedError) as error:
            opened.exchange("GET", f"/policy?id={wanted}")
        answers.append(str(error.value).replace(str(wanted), "N"))
    assert answers[0] == answers[1]
    assert in_force(served, number) == offer
    for policy in (PRIVATE, FRIENDS):
        with session(served, OWNER) as owner:
            nonce = owner.exchange("GET", f"/policy?id={number}")["nonce"]
            body = choice(policy, nonce)
            assert owner.exchange("POST", f"/policy?id={number}", body) == {"policy": policy}
            with pytest.raises(RefusedError):
                owner.exchange("POST", f"/policy?id={number}", body)


@pytest.mark.parametrize("body", [b"[" * 4096, b'{"a":' * 800, b'{"a":[' * 680], ids=["arrays", "objects", "both"])
def test_brackets_end_no_worker(served: tuple[Stack, Path], body: bytes) -> None:
    """A session's stack holds some 750 of them; the answer is an error, and the connection goes on."""
    number = finds(served, OWNER)[0][TITLE]
    with session(served, OWNER) as owner:
        with pytest.raises(ProtocolError, match=r"got 400: .*the body is not"):
            owner.exchange("POST", f"/policy?id={number}", body)
        assert owner.exchange("GET", "/session")["principal"] == OWNER
    with contextlib.closing(Session(served[0].front_end)) as nobody:
        with pytest.raises(ProtocolError, match=r"got 400: .*the body is not"):
            nobody.exchange("POST", "/session", body)
        assert nobody.login(population.load(served[1])[FRIEND])["principal"] == FRIEND


def test_a_choice_for_what_has_changed_is_refused_in_words(served: tuple[Stack, Path], browser: Browser) -> None:
    number = finds(served, FRIEND)[0][TITLE]
    enter(browser, served[0])
    press(browser, OPENER, "you and your friends may read it")
    for policy in (PRIVATE, FRIENDS):
        with session(served, OWNER) as owner:
            nonce = owner.exchange("GET", f"/policy?id={number}")["nonce"]
            owner.exchange("POST", f"/policy?id={number}", choice(policy, nonce))
    browser.expect("403")
    press(browser, ANSWER, "the signature is not of")
    assert in_force(served, number)["policy"] == FRIENDS
    assert browser.one(".policy .problem[role=status]").text
    press(browser, ANSWER, "Done: only you may read it.")  # the next offer is there already
    press(browser, ANSWER, "Done: you and your friends may read it.")


def tell_lies(browser: Browser, lie: dict[str, Any]) -> None:
    """Have a front end that lies about documents and policies. What the page sends is in window.sent."""
    browser.script(
        "const real = fetch; window.sent = [];"
        "window.fetch = async (path, options) => {"
        "  if (!path.startsWith('/policy')) return real(path, options);"
        "  if (options.body) window.sent.push(JSON.parse(options.body));"
        "  return new Response(JSON.stringify(options.body ? {policy: 'public()'} : window.lie)); };"
        "window.lie = arguments[0]",
        lie,
    )


LIE: dict[str, Any] = {
    "conduit": PATH,
    "policy": FRIENDS,
    "choices": [PRIVATE],
    "nonce": "0" * 64,
    "pipeline": "another",
}


def test_the_page_signs_only_what_it_shows(served: tuple[Stack, Path], browser: Browser) -> None:
    enter(browser, served[0])
    tell_lies(browser, LIE | {"conduit": f"/corpus/friends/{FRIEND}/1.txt"})
    press(browser, OPENER, "is no document of yours")
    assert not browser.all(ANSWER)
    browser.press(Keys.ENTER)

    others = ["public()", "a\u0001()", f'private(owner: "{FRIEND}")', PRIVATE]
    browser.script("window.lie = arguments[0]", LIE | {"choices": others})
    press(browser, OPENER, "you and your friends may read it")
    labels = ["Choose public()", f"Choose {others[2]}", "Make private"]
    assert [button.text for at, button in enumerate(browser.all(ANSWER)) if at != 1] == labels
    press(browser, f"{ANSWER}:nth-child(2)", "characters that this page does not sign")
    assert browser.script("return window.sent") == []
    # What the front end says after the page has shown an offer changes nothing about what is signed.
    later = LIE | {"conduit": f"/corpus/private/{OWNER}/2.txt", "nonce": "1" * 64, "choices": ["public()"]}
    browser.script("window.lie = arguments[0]", later)
    browser.script("for (let i = 0; i < 2; i++) document.querySelector(arguments[0]).click()", f"{ANSWER}:nth-child(4)")
    waiting.until(lambda: "Sys-E says that public() was chosen." in browser.text(".policy"), "it is answered", 10)
    waiting.until(lambda: browser.one(OPENER).is_enabled(), "the next offer is there", 10)
    assert browser.script("return window.sent") == [json.loads(choice(PRIVATE, LIE["nonce"]))]
    assert browser.text(".policy code") == later["conduit"]
    browser.script("window.lie = {...window.lie, nonce: 'x'}")
    browser.script("arguments[0].focus()", browser.one(OPENER))
    browser.press(Keys.ENTER)  # closes it
    press(browser, OPENER, "you and your friends may read it")
    press(browser, ANSWER, "Sys-E has sent no number to sign.")
    assert len(browser.script("return window.sent")) == 1


UNSEEN = {
    "variation selector": "\ufe0f",
    "grapheme joiner": "\u034f",
    "filler": "\u3164",
    "soft hyphen": "\u00ad",
    "zero width": "\u200b",
    "mark of direction": "\u202e",
    "isolate": "\u2066",
    "tag": "\U000e0041",
    "blank of Braille": "\u2800",
    "another space": "\u00a0",
    "line": "\n",
    "escape": "\u001b",
    "not assigned": "\U000effff",
    "private use": "\ue000",
    "not composed": "e\u0301",
}
TAKES_ITS_PLACE = [
    "a b",
    "a  b",
    " a",
    "a ",
    "a" + 200 * " " + "b",
    "\u05d0/1/\u05d1",
    100 * "a " + "b",
    100 * "a" + " b",
]
# The places of the characters of the path that the page shows.
PLACES = """
const text = document.querySelector('.policy code').firstChild, range = document.createRange();
return [...text.data].map((_, at) => {
  range.setStart(text, at);
  range.setEnd(text, at + 1);
  const {left, top, width} = range.getBoundingClientRect();
  return [Math.round(top), left, width];
});
"""


def test_the_page_signs_no_path_that_looks_like_another(served: tuple[Stack, Path], browser: Browser) -> None:
    enter(browser, served[0])
    plain = f"/corpus/friends/{OWNER}/a b.txt"
    tell_lies(browser, LIE | {"conduit": plain})
    for inserted in UNSEEN.values():
        browser.script("window.lie = {...window.lie, conduit: arguments[0]}", plain.replace("a b", f"a{inserted}b"))
        press(browser, OPENER, "characters that this page does not sign")
        assert not browser.all(ANSWER), ascii(inserted)
        browser.press(Keys.ENTER)  # closes it

    for name in TAKES_ITS_PLACE:
        path = plain.replace("a b", name)
        browser.script("window.sent = []; window.lie = {...window.lie, conduit: arguments[0]}", path)
        press(browser, OPENER, "you and your friends may read it")
        places = browser.script(PLACES)
        assert len(places) == len(path)
        assert places == sorted(places), ascii(name)
        assert all(width > 1 for _, _, width in places), ascii(name)
        press(browser, ANSWER, "Sys-E says that public() was chosen.")
        assert browser.script("return window.sent") == [json.loads(choice(PRIVATE, LIE["nonce"], path=path))]
        browser.script("arguments[0].focus()", browser.one(OPENER))
        browser.press(Keys.ENTER)  # closes it


def test_what_sys_e_says_is_shown_as_text(served: tuple[Stack, Path], browser: Browser) -> None:
    enter(browser, served[0])
    path, policy = f"/corpus/friends/{OWNER}/<b>1</b>.txt", "<i>public</i>()"
    tell_lies(browser, LIE | {"conduit": path, "policy": policy, "choices": [f"{policy} or not"]})
    press(browser, OPENER, f"it is under the policy {policy}")
    assert browser.text(".policy code") == path
    assert browser.text(ANSWER) == f"Choose {policy} or not"
    assert not browser.all(".policy :is(b, i)")
    browser.press(Keys.ENTER)
    browser.script("window.lie = {...window.lie, policy: ''}")
    press(browser, OPENER, "it is under a policy that you cannot choose")


def test_who_is_not_the_owner_or_has_no_key_does_not_choose(served: tuple[Stack, Path], browser: Browser) -> None:
    enter(browser, served[0])
    browser.script("window.kept = login; login = null")  # as after the page was loaded again
    press(browser, OPENER, "this tab has no key to sign with")
    assert not browser.all(ANSWER)

    browser.script("login = window.kept")
    shown: list[list[bool]] = []  # for each result, whether it is the owner's, and whether it has the button

    def has_both() -> bool:
        shown[:] = browser.script(
            "const owned = one => one.querySelector('.badges').textContent.includes('by ' + arguments[0]);"
            "return [...document.querySelectorAll('.result')].map("
            " one => [owned(one), !!one.querySelector('.choosing')])",
            OWNER,
        )
        return {own for own, _ in shown} == {True, False}

    search_until(browser, has_both, "documents of the user and of others are found")
    assert all(own == button for own, button in shown), shown
