# SPDX-License-Identifier: BSD-2-Clause
"""The page that explains decisions, as a person uses it: Chromium and a real monitor.

Tests name the monitor before the browser, which so ends first: a page whose monitor has gone reports errors.
"""

from __future__ import annotations

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium.common.exceptions import JavascriptException
from selenium.webdriver.common.keys import Keys

from monitor.tests.diaries import SHAI
from testing import waiting
from testing.browser import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from monitor.tests.diaries import Diaries
    from testing.browser import Browser
    from testing.pictures import Gallery

SHAPES = Path(__file__).parents[1] / "internal/shape/testdata/shapes.json"
DOCUMENTS = ["/diary/alice/1.txt", "/diary/bob/1.txt", "/diary/bob/2.txt"]
SHOWN = "const all = ['answer', 'readers', 'decisions']; return all.every(id => !document.getElementById(id).hidden);"
HOSTILE = [
    "<img src=x onerror=ran=1>",
    "</script><script>ran=1</script>",
    "'\"><svg onload=ran=1>",
    "line\nbreak\ttab",
    "\u202egnp.exe",  # shown as exe.png
    "javascript:ran=1",
    "&lt;b&gt;",
    "${ran=1}{{ran=1}}",
    "\U0001f642e\u0301",
]
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  event => window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@pytest.fixture
def diaries(start: Callable[..., Diaries]) -> Diaries:
    return start(friends=["dave"], documents=DOCUMENTS)


def enter(browser: Browser, diaries: Diaries) -> None:
    """Open the monitor's link."""
    browser.open(diaries.link.read_text().strip())
    waiting.until(lambda: "diaries" in browser.text("#state"), "the page is connected")


def ask(browser: Browser, user: str, document: str) -> None:
    """Type a question, as one who has no mouse."""
    browser.one("#principal").clear()
    browser.one("#conduit").clear()
    browser.one("#principal").click()
    browser.press(user, Keys.TAB, Keys.BACK_SPACE * 20, "de", Keys.TAB, document, Keys.ENTER)
    answered(browser, user, document)


def answered(browser: Browser, user: str, document: str) -> None:
    """Wait for the answer to a question."""
    waiting.until(
        lambda: browser.script(SHOWN) and user in browser.text("#facts") and document in browser.text("#facts"),
        f"the page says whether {user} may read {document}",
    )


def test_a_person_asks_why(diaries: Diaries, browser: Browser) -> None:
    enter(browser, diaries)
    ask(browser, "carol", "/diary/alice/1.txt")
    assert browser.text("#verdict") == "Denied"
    assert '"friends/alice" does not list carol as friend' in browser.text("#sentence")
    assert 'clause { sKeyIs("alice") }' in browser.text("#tree")
    assert "diary:3:52" in browser.text("#tree")
    assert [one.text for one in browser.all("#people a")] == ["task courier", "alice", "bob", "dave"]
    assert "4 users and tasks." in browser.text("#readers-hint")

    browser.all("#people a")[2].click()
    answered(browser, "bob", "/diary/alice/1.txt")
    assert browser.text("#verdict") == "Allowed"
    assert '"friends/alice" says friend("bob")' in browser.text("#facts")
    assert browser.script("return document.activeElement.id") == "verdict"

    browser.driver.back()
    answered(browser, "carol", "/diary/alice/1.txt")
    remedy = browser.text("#command").split()
    assert remedy == ["shai", "facts", "add", "friends/alice", "friend", "carol"]
    diaries.call(*remedy[1:])
    ask(browser, "carol", "/diary/alice/1.txt")
    assert browser.text("#verdict") == "Allowed"
    assert not browser.one("#said").find_elements("css selector", "#remedy:not([hidden])")
    assert [one.text for one in browser.all("#people a")] == ["task courier", "alice", "bob", "carol", "dave"]

    browser.one("#conduit").clear()
    browser.one("#conduit").send_keys("/nowhere", Keys.ENTER)
    browser.expect("404")
    assert "no rule of the bundle covers the conduit" in browser.text("#problem")
    assert not browser.one("main").find_elements("css selector", "#answer:not([hidden])"), "it is of another question"


def test_denials_appear_as_they_happen(diaries: Diaries, browser: Browser) -> None:
    enter(browser, diaries)
    assert not browser.all("#live li")
    diaries.deliver()
    waiting.until(lambda: len(browser.all("#live li")) == 2, "the courier's denials are shown")
    assert "courier read /diary/bob/2.txt" in browser.text("#live")

    browser.all("#live a")[0].click()
    answered(browser, "courier", "/diary/bob/2.txt")
    assert browser.text("#verdict") == "Denied"
    assert "denied" in browser.text("#records")

    browser.one("#pause").click()
    diaries.deliver()
    waiting.until(lambda: browser.text("#pause") == "Go on (2)", "denials are held back")
    assert len(browser.all("#live li")) == 2
    browser.one("#pause").click()
    assert len(browser.all("#live li")) == 4


def test_everybody_can_use_it(diaries: Diaries, browser: Browser, gallery: Gallery) -> None:
    diaries.deliver()
    enter(browser, diaries)
    assert browser.barriers() == []
    waiting.until(lambda: len(browser.all("#live li")) == 2, "the courier's denials are shown")
    ask(browser, "carol", "/diary/alice/1.txt")
    parts = ("header", "#question", "#conduit", "#said", "#remedy", "#facts", "#derivation", "#readers", "#live")
    for name, width, dark in (("light", WIDE, False), ("dark", WIDE, True), ("narrow", NARROW, False)):
        browser.show(width, dark=dark)
        assert browser.barriers() == []
        gallery.compare(browser, name, *parts)


def test_the_keyboard_suffices(diaries: Diaries, browser: Browser) -> None:
    enter(browser, diaries)
    ask(browser, "carol", "/diary/alice/1.txt")
    browser.script("document.activeElement.blur(); window.scrollTo(0, 0)")
    seen: list[Any] = []
    while not seen or seen[-1] not in seen[:-1]:
        browser.press(Keys.TAB)
        seen.append(browser.script(
            "const e = document.activeElement, box = e.getBoundingClientRect(), style = getComputedStyle(e);"
            "if (e !== document.body && style.outlineStyle === 'none') throw Error('no focus ring: ' + e.outerHTML);"
            "return e === document.body ? 'end' : e.id || e.textContent.slice(0, 40) + Math.round(box.top + scrollY);"
        ))  # fmt: skip
    for reached in ("skip", "principal", "region", "conduit", "access", "task", "copy", "expand", "pause"):
        assert reached in seen
    closed = browser.one("#tree summary")
    closed.send_keys(Keys.ENTER)
    assert not browser.script("return document.querySelector('#tree details').open")
    browser.one("#expand").send_keys(Keys.SPACE)
    assert browser.script("return [...document.querySelectorAll('#tree details')].every(one => one.open)")


def escaped(name: str) -> str:
    return name.replace("\n", "\\n").replace("\t", "\\t").replace("\u202e", "\\u{202e}")


def test_what_has_no_shape_is_an_escape(diaries: Diaries, browser: Browser) -> None:
    """The table is that of the test of shai's own output, too."""
    table = json.loads(SHAPES.read_text())
    enter(browser, diaries)
    written = "const [texts, done] = arguments; import('./shown.js').then(({written}) => done(texts.map(written)));"
    texts = browser.driver.execute_async_script(written, table["without a shape"])
    assert [text for text in texts if not text.startswith("\\")] == []
    seen = table["with a shape"]
    assert browser.driver.execute_async_script(written, seen) == seen


def test_two_spaces_are_not_one(diaries: Diaries, browser: Browser) -> None:
    enter(browser, diaries)
    one, two = browser.driver.execute_async_script(
        "const done = arguments[0]; import('./shown.js').then(({shown}) => done(['a b', 'a  b'].map(text => {"
        "  const element = shown(text); document.body.append(element);"
        "  return element.getBoundingClientRect().width; })));"
    )
    assert one < two


def test_the_page_asks_about_the_very_name(start: Callable[..., Diaries], browser: Browser) -> None:
    diaries = start(friends=["dave\n"], documents=["/diary/alice/1.txt", "/diary/bob/1.txt"])
    enter(browser, diaries)
    for user, verdict in (("dave", "Denied"), ("dave\n", "Allowed")):
        browser.script(
            "location.hash = new URLSearchParams({principal: arguments[0], region: 'de', conduit: arguments[1]})",
            user, "/diary/alice/1.txt",
        )  # fmt: skip
        answered(browser, f"({escaped(user)}, de)", "/diary/alice/1.txt")
        assert browser.text("#verdict") == verdict
        browser.one("#conduit").send_keys(Keys.ENTER)  # asks again
        answered(browser, f"({escaped(user)}, de)", "/diary/alice/1.txt")
        assert browser.text("#verdict") == verdict
    browser.one("#principal").send_keys(Keys.END, Keys.BACK_SPACE, Keys.BACK_SPACE, Keys.ENTER)  # what is edited counts
    answered(browser, "(dave, de)", "/diary/alice/1.txt")
    assert browser.text("#verdict") == "Denied"


def test_hostile_names_stay_text(start: Callable[..., Diaries], browser: Browser) -> None:
    long = "x" * 4096  # the longest text of a fact
    names = [f"/diary/bob/{name.replace('/', '|')}" for name in HOSTILE]
    diaries = start(friends=[*HOSTILE, long], documents=["/diary/alice/1.txt", *names])
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": VIOLATIONS})
    diaries.deliver()
    enter(browser, diaries)
    waiting.until(lambda: len(browser.all("#live li")) == len(names), "all denials are shown")
    for user, document in [*zip(HOSTILE, names, strict=True), (long, "/diary/alice/1.txt")]:
        browser.script(
            "location.hash = new URLSearchParams({principal: arguments[0], region: 'de', conduit: arguments[1]})",
            user, document,
        )  # fmt: skip
        waiting.until(
            lambda user=user: browser.script(SHOWN) and browser.script(
                "return document.getElementById('principal').value") == escaped(user)
            and not browser.script("return document.getElementById('question').hasAttribute('aria-busy')"),
            "the page has answered",
        )  # fmt: skip
        assert browser.barriers() == []
        if user != long:
            assert f"read of {escaped(document)} by " in browser.text("#facts")
    text = browser.text("body")
    assert "<img src=x onerror=ran=1>" in text
    assert "\\u{202e}gnp.exe" in text
    assert "line\\nbreak\\ttab" in text
    assert "\u202e" not in text
    assert "… 3,736 characters …" in text
    assert long not in text
    assert browser.script("return window.ran") is None
    assert browser.script("return window.violations") == []
    assert browser.script("return document.querySelectorAll('img, svg, iframe, main script').length") == 0


def test_the_policy_forbids_markup_and_scripts(diaries: Diaries, browser: Browser) -> None:
    enter(browser, diaries)
    browser.expect("document requires")
    browser.expect("Content Security Policy")
    browser.script(VIOLATIONS)
    for code, kind in (
        ("document.body.innerHTML = '<b>markup</b>'", "TrustedHTML"),
        ("document.body.setAttribute('onclick', 'ran = 1')", "TrustedScript"),
        ("const one = document.createElement('script'); one.text = 'ran = 1'", "TrustedScript"),
    ):
        with pytest.raises(JavascriptException, match=kind):
            browser.script(code)
    # Requests to elsewhere are refused; the browser of the test sees that they were tried.
    browser.expect("http://192.0.2.1/")
    browser.script("new Image().src = 'http://192.0.2.1/x.png'; fetch('http://192.0.2.1/').catch(() => {})")
    waiting.until(lambda: "img-src" in "".join(browser.script("return window.violations")), "the picture is refused")
    assert browser.script("return window.ran") is None


def test_a_link_opens_one_window(diaries: Diaries, browser: Browser) -> None:
    link = diaries.link.read_text().strip()
    enter(browser, diaries)
    assert "ticket" not in browser.driver.current_url
    browser.driver.refresh()
    waiting.until(lambda: "diaries" in browser.text("#state"), "the window keeps its token")

    browser.expect("401")
    for address in (link, link.partition("#")[0]):
        browser.driver.switch_to.new_window("tab")
        browser.open(address)
        assert "holds no token, or its link was used before" in browser.text("#problem")
        assert browser.text("#state") == "not connected"
    window = browser.driver.current_url
    enter(browser, diaries)  # by the next link, whose address differs in its fragment only
    assert browser.driver.current_url == window
    assert not browser.all("#problem:not([hidden])")
    diaries.deliver()
    waiting.until(lambda: len(browser.all("#live li")) == 2, "denials are followed, too")


SQUATTER = """
addEventListener("install", () => skipWaiting());
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => event.respondWith(new Response("<!DOCTYPE html><title>squatter</title>",
  {headers: {"Content-Type": "text/html"}})));
"""
STAYS = "navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(arguments[0])"


class Squatter(BaseHTTPRequestHandler):
    """Has the port before the monitor, and leaves in the browser what answers instead of later owners of the port."""

    def do_GET(self) -> None:
        script = self.path.endswith(".js")
        body = (SQUATTER if script else "<!DOCTYPE html><title>squatter</title>").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if script else "text/html")
        self.send_header("Cache-Control", "public, max-age=31536000, immutable")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_who_had_the_port_before_learns_nothing(start: Callable[..., Diaries], browser: Browser) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Squatter) as before:
        port = before.server_address[1]
        serving = threading.Thread(target=before.serve_forever)
        serving.start()
        hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
        for host in hosts:
            browser.open(f"http://{host}/")
            browser.driver.execute_async_script(STAYS)
            browser.open(f"http://{host}/page.js")
            browser.open("about:blank")
        before.shutdown()
        serving.join()
    browser.open(f"http://{hosts[0]}/")
    assert browser.driver.title == "squatter"  # the browser keeps it
    browser.open("about:blank")
    diaries = start(friends=[], documents=DOCUMENTS, port=port)
    enter(browser, diaries)
    ask(browser, "carol", "/diary/alice/1.txt")


def test_explain_serves_the_page_itself(diaries: Diaries, browser: Browser) -> None:
    command = [str(SHAI), "explain", "--browser", "--socket", str(diaries.base / "s.sock")]
    question = ["--principal", "carol", "--region", "de", "--conduit", "/diary/alice/1.txt"]
    with subprocess.Popen([*command, *question], stdout=subprocess.PIPE, text=True, env={}) as served:
        assert served.stdout
        try:
            browser.open(served.stdout.readline().strip())
            answered(browser, "carol", "/diary/alice/1.txt")
            assert browser.text("#verdict") == "Denied"
            diaries.deliver()
            waiting.until(lambda: len(browser.all("#live li")) == 2, "denials come through the command")
        finally:
            served.terminate()
        assert served.wait(60) == 0
    waiting.until(lambda: "does not answer" in browser.text("#live-hint"), "the page says that the command has ended")
    browser.expect("ERR_CONNECTION_REFUSED")
