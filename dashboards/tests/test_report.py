# SPDX-License-Identifier: BSD-2-Clause
"""What a person sees of a report, in Chromium: `shai report` writes it from the results of a run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from testing.browser import NARROW, WIDE

if TYPE_CHECKING:
    from testing.browser import Browser
    from testing.pictures import Gallery

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "monitor" / "internal" / "report" / "testdata"
HOSTILE = "</script><img src=x onerror=\"document.title='stolen'\">'\n\u2028\u202e\u200d\u202f👩  {{name}}"

# For each chart: the texts that it draws, the cells of its table, and how many shapes it has.
_CHARTS = """
return [...document.querySelectorAll("figure[data-chart]")].map(figure => {
  const svg = figure.querySelector(".chart svg"), box = figure.querySelector(".chart").getBoundingClientRect();
  return {
    id: figure.id, kind: JSON.parse(figure.dataset.chart).kind, width: box.width, height: box.height,
    drawn: [...svg.querySelectorAll("text")].map(text => text.textContent),
    shapes: svg.querySelectorAll("path").length,
    rows: [...figure.querySelectorAll("tbody tr")].map(row => [...row.cells].map(cell => cell.textContent)),
    columns: [...figure.querySelectorAll("thead th:not([data-hidden])")].map(heading => heading.textContent).slice(1),
  };
});
"""

# For each row of cards: how many there are, where the last one ends, and where their place does.
_ROWS = """
return [...document.querySelectorAll(".figures")].flatMap(place => {
  const boxes = [...place.children].map(card => card.getBoundingClientRect());
  const rows = Object.groupBy(boxes, box => Math.round(box.top));
  return Object.values(rows).map(boxes => ({
    cards: boxes.length, right: Math.max(...boxes.map(box => box.right)), end: place.getBoundingClientRect().right,
  }));
});
"""

# Pairs of texts of a chart that lie over each other, but for turned ones, whose boxes are larger than they are.
_OVER = """
return [...document.querySelectorAll("figure[data-chart]")].flatMap(figure => {
  const texts = [...figure.querySelectorAll(".chart svg text")]
    .filter(text => text.textContent && !/rotate|matrix/.test(text.getAttribute("transform")));
  const boxes = texts.map(text => text.getBoundingClientRect());
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]);
  return boxes.flatMap((a, i) => boxes.slice(i + 1).flatMap((b, j) =>
    shared(a, b, "left", "right") > 2 && shared(a, b, "top", "bottom") > 3
      ? [`${figure.id}: ${texts[i].textContent} / ${texts[i + 1 + j].textContent}`] : []));
});
"""

# Elements with a name in which two spaces look like one.
_COLLAPSED = """
return [...document.querySelectorAll('main *')]
  .filter(e => e.childElementCount === 0 && e.textContent.includes('👩') && !e.closest('.chart, .unseen'))
  .filter(e => !getComputedStyle(e).whiteSpace.startsWith('pre')).map(e => e.outerHTML)
"""


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Return a function that writes a report of files, and returns its path."""

    def run(*sources: Path) -> Path:
        page = tmp_path / "report.html"
        subprocess.run([ROOT / "build/bin/shai", "report", *sources, "--file", page], check=True, capture_output=True)
        return page

    return run


def hostile(folder: Path) -> Path:
    """Copy a run's results, objects and audit records with names that try to be markup."""
    results = json.loads((RUN / "results.json").read_text())
    for entry in results["throughput"]:
        entry[HOSTILE] = entry["shai"]
    results["machine"]["processor"] = HOSTILE
    objects = json.loads((RUN / "objects.json").read_text())
    for item in objects["items"]:
        item["metadata"]["name"] = HOSTILE if item["kind"] != "Task" else item["metadata"]["name"]
    denials = json.loads((RUN / "denials.json").read_text())
    for record in denials:
        record |= {"policy": HOSTILE, "conduit": f"/corpus/{HOSTILE}", "reason": HOSTILE, "instance": HOSTILE}
    for name, content in {"results.json": results, "objects.json": objects, "denials.json": denials}.items():
        (folder / name).write_text(json.dumps(content))
    return folder


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, 800, NARROW])
def test_nothing_keeps_people_from_reading_it(write: Any, browser: Browser, width: int, scheme: str) -> None:
    browser.show(width, dark=scheme == "dark")
    browser.open(write(RUN).as_uri())
    assert browser.text("h1") == "What enforcement costs, and what it stops"
    assert browser.barriers() == []
    assert browser.script(_OVER) == []
    charts = browser.script(_CHARTS)
    assert len(charts) >= 12
    assert {chart["kind"] for chart in charts} == {"bars", "stack", "curves", "steps", "points"}
    for chart in charts:
        assert chart["shapes"] > 5, f"{chart['id']} is empty"
        assert width > chart["width"] > width / 4, f"{chart['id']} is {chart['width']} pixels wide"


def test_it_looks_as_somebody_has_seen_it(write: Any, browser: Browser, gallery: Gallery) -> None:
    parts = ("header", "h1", "#costs-throughput", "#costs-added", "#costs-throughput .chart")
    for name, width, dark in (("light", WIDE, False), ("dark", WIDE, True), ("narrow", NARROW, False)):
        browser.show(width, dark=dark)
        browser.open(write(RUN).as_uri())
        gallery.compare(browser, name, *parts, height=2400)


def test_no_card_has_an_empty_place_beside_it(write: Any, browser: Browser) -> None:
    browser.open(write(RUN).as_uri())
    rows = browser.script(_ROWS)
    assert len(rows) > 10
    assert any(row["cards"] > 1 for row in rows)
    assert [row for row in rows if row["right"] < row["end"] - 2] == []


def test_names_without_a_colour_look_like_no_mode(write: Any, browser: Browser, tmp_path: Path) -> None:
    """The first colours of the palette are those of modes, under other names."""
    results = json.loads((RUN / "results.json").read_text())
    for entry in results["throughput"]:
        entry["another"] = entry["shai"]
    given = tmp_path / "results.json"
    given.write_text(json.dumps(results))
    browser.open(write(given).as_uri())
    colours = browser.script(
        "const look = getComputedStyle(document.documentElement);"
        "return [...new Set([...document.querySelectorAll('#costs-throughput .chart path')]"
        ".map(path => path.getAttribute('fill')).filter(fill => /--(modes|parts|results)-/.test(fill)))]"
        ".map(fill => look.getPropertyValue(fill.slice(4, -1)))"
    )
    assert len(colours) == len(set(colours)) == len(results["throughput"][0]) - 1


def test_points_at_one_place_have_one_name(write: Any, browser: Browser, tmp_path: Path) -> None:
    items = [item for item in json.loads((RUN / "objects.json").read_text())["items"] if item["kind"] == "AnalysisRun"]
    one = json.loads(json.dumps(items[0]))
    one["metadata"]["name"] = "the-same-again"
    given = tmp_path / "objects.json"
    given.write_text(json.dumps({"kind": "List", "items": [items[0], one]}))
    browser.open(write(given).as_uri())
    (chart,) = [chart for chart in browser.script(_CHARTS) if chart["id"] == "analysis-growth"]
    assert browser.script(_OVER) == []
    assert len({row[0] for row in chart["rows"]} & set(chart["drawn"])) == 1
    assert "1,000,000,000" not in chart["drawn"]


def test_a_chart_is_drawn_from_its_table(write: Any, browser: Browser) -> None:
    browser.open(write(RUN).as_uri())
    charts = {chart["id"]: chart for chart in browser.script(_CHARTS)}
    for chart in charts.values():
        if len(chart["columns"]) > 1 and chart["kind"] != "points":
            assert set(chart["columns"]) <= set(chart["drawn"]), chart["id"]
    results = json.loads((RUN / "results.json").read_text())
    throughput = charts["costs-throughput"]
    assert [row[0] for row in throughput["rows"]] == ["1", "8", "32", "whole run"]
    for row, entry in zip(throughput["rows"], results["throughput"], strict=True):
        for cell, mode in zip(row[1:], throughput["columns"], strict=True):
            value = float(cell.split(" ")[0].replace(",", ""))
            assert value == pytest.approx(entry[mode]["queriesPerSecond"]["estimate"], rel=0.005)
    # Heights of bars are in proportion to the cells: the chart has nothing but the table.
    cells = [float(row[1].split(" ")[0]) for row in throughput["rows"]]
    assert heights(browser, "costs-throughput", "modes-baseline") == pytest.approx(
        [c / cells[0] for c in cells], rel=0.02
    )


def heights(browser: Browser, figure: str, colour: str) -> list[float]:
    """Return the heights of a chart's bars of one colour, with the first as 1."""
    found = browser.script(
        "return [...document.querySelectorAll(`#${arguments[0]} .chart path[fill='var(--${arguments[1]})']`)]"
        ".map(path => path.getBBox()).filter(box => box.width > 8 && box.height > 16).map(box => box.height)",
        figure,
        colour,
    )
    return [height / found[0] for height in found]


def test_names_from_files_are_texts(write: Any, browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    folder.mkdir()
    browser.open(write(hostile(folder)).as_uri())
    assert browser.script("return document.title") == "What enforcement costs, and what it stops"
    assert browser.all("img") == []
    shown = browser.script("return document.body.textContent")
    assert "</script><img src=x" in shown
    assert not set("\u202e\u2028\u200d\u202f") & set(shown)
    assert browser.script(_COLLAPSED) == []
    assert browser.barriers() == []


def test_names_of_what_every_object_has_are_names(write: Any, browser: Browser, tmp_path: Path) -> None:
    names = ["__proto__", "constructor", "hasOwnProperty", "a"]
    results = json.loads((RUN / "results.json").read_text())
    for entry in results["throughput"]:
        entry.update(dict.fromkeys(names, entry["shai"]))
    results["samples"] = [
        {"mode": mode, "session_length": 1, "sessions": 1, "process_cpu_seconds": dict.fromkeys(names, 1)}
        for mode in names
    ]
    (tmp_path / "results.json").write_text(json.dumps(results))
    browser.open(write(tmp_path / "results.json").as_uri())
    assert browser.script("const all = []; for (const name in {}) all.push(name); return all") == []
    charts = browser.script(_CHARTS)
    drawn = [chart for chart in charts if set(names) <= set(chart["columns"])]
    assert {chart["kind"] for chart in drawn} == {"bars", "stack"}
    for chart in drawn:
        assert set(names) <= set(chart["drawn"])
    assert browser.one("#scheme").is_displayed()


def test_the_switch_changes_light_and_dark(write: Any, browser: Browser) -> None:
    browser.open(write(RUN).as_uri())
    colours = (
        "return ['h1', '.chart text'].map(one => getComputedStyle(document.querySelector(one)))"
        ".map(style => style.color + style.fill)"
    )
    light = browser.script(colours)
    browser.one("#scheme").click()
    dark = browser.script(colours)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert browser.one("#scheme").get_attribute("aria-pressed") == "true"
    browser.one("#scheme").click()
    assert browser.script(colours) == light


def test_the_keyboard_reaches_everything(write: Any, browser: Browser) -> None:
    browser.open(write(RUN).as_uri())
    browser.press("\ue004")  # Tab
    assert browser.script("return document.activeElement.textContent") == "Skip to the figures"
    browser.press("\ue007")  # Enter
    assert browser.script("return document.activeElement.id") == "main"
    table = browser.one("#costs-added summary")
    browser.script("arguments[0].focus()", table)
    browser.press(" ")
    assert browser.one("#costs-added table").is_displayed()


def test_without_a_program_all_tables_are_there(write: Any, browser: Browser) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.open(write(RUN).as_uri())
    for table in browser.all("table"):
        assert table.is_displayed()
    assert not any(chart.is_displayed() for chart in browser.all(".chart"))


def test_on_paper_charts_are_whole_and_tables_open(write: Any, browser: Browser, tmp_path: Path) -> None:
    browser.open(write(RUN).as_uri())
    printed = tmp_path / "report.pdf"
    printed.write_bytes(browser.printed())
    text = subprocess.run(["pdftotext", "-layout", printed, "-"], check=True, capture_output=True, text=True).stdout
    sizes = subprocess.run(["pdfinfo", printed], check=True, capture_output=True, text=True).stdout
    assert re.search(r"Page size: +59[45]\S* x 84[12]", sizes), sizes
    for words in ("CPU time that a mode adds", "448 [393, 508]", "stopped: open of /corpus/private/bob/17.txt"):
        assert words in text
    # Every chart's horizontal axis is on the page of its title.
    for title, axis in (("Throughput", "queries per session"), ("Sessions per second", "installation")):
        page = next(page for page in text.split("\f") if re.search(rf"^ *{title}$", page, re.MULTILINE))
        assert axis in page[page.index(title) :], f"{title} is cut"


def test_after_printing_charts_and_tables_are_as_before(write: Any, browser: Browser) -> None:
    browser.open(write(RUN).as_uri())
    widths = "return [...document.querySelectorAll('.chart svg')].map(svg => Number(svg.getAttribute('width')))"
    before = browser.script(widths)
    on_paper = browser.script(f"dispatchEvent(new Event('beforeprint')); {widths}")
    assert set(on_paper) == {688}  # so that letters are as large as those of the text
    browser.script("dispatchEvent(new Event('afterprint'))")
    browser.printed()
    assert browser.script("return document.querySelectorAll('details[open]').length") == 0
    assert browser.script(widths) == before
