# SPDX-License-Identifier: BSD-2-Clause
"""Compares pages with pictures that someone has looked at: `pytest --rewrite` takes them again.

Fonts differ between machines, so a picture is not compared pixel by pixel. Where the page's parts are is compared with
some play, and the picture as one of a few hundred coarse cells: a part that is missing, has lost its style or lies over
another shows in both, another font in neither.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from testing.browser import Browser

_COLUMNS = 20
"""Cells in a row: the browser scales pictures down to these."""
_PLAY_PIXELS, _PLAY = 16.0, 0.12
"""By how much an edge of a part may be off: pixels, and a share of its distance from the page's corner."""
_MEAN, _FAR, _FAR_CELLS = 0.035, 0.2, 0.04
"""The largest mean difference of cells (0 to 1), the difference that makes a cell another one, the most of these."""

_BOXES = """
return Object.fromEntries(arguments[0].map(selector => {
  const box = document.querySelector(selector)?.getBoundingClientRect();
  return [selector, box ? [box.left + scrollX, box.top + scrollY, box.right + scrollX, box.bottom + scrollY]
    .map(Math.round) : null];
}));
"""
_CELLS = """
const [text, columns, done] = arguments;
const bytes = Uint8Array.from(atob(text), c => c.charCodeAt(0));
createImageBitmap(new Blob([bytes], {type: "image/png"})).then(image => {
  const rows = Math.max(1, Math.round(columns * image.height / image.width));
  const canvas = new OffscreenCanvas(columns, rows), context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, columns, rows);
  done([rows, Array.from(context.getImageData(0, 0, columns, rows).data)]);
});
"""


@dataclass(frozen=True)
class Gallery:
    """The pictures of one folder of tests."""

    directory: Path
    """Where they are committed."""
    taken: Path
    """Where the pictures of this run go."""
    rewrite: bool

    def compare(self, browser: Browser, name: str, *selectors: str, height: int | None = None) -> None:
        """Compare the page with picture ``name``, and the places of the elements that the CSS selectors name first.

        With ``height``, compare only the page's uppermost part: a picture of a long page is large.
        """
        picture, boxes = browser.picture(height), browser.script(_BOXES, selectors)
        missing = [selector for selector in selectors if not boxes[selector]]
        assert not missing, f"not on the page: {missing}"
        committed, places = self.directory / f"{name}.png", self.directory / f"{name}.json"
        if self.rewrite:
            self.directory.mkdir(exist_ok=True)
            committed.write_bytes(picture)
            places.write_text(json.dumps(boxes, indent=1, sort_keys=True) + "\n")
        assert committed.is_file(), f"there is no picture {committed} yet; run pytest --rewrite and look at it"
        taken = self.taken / committed.name
        taken.write_bytes(picture)
        differences = moved(json.loads(places.read_text()), boxes) + unlike(
            cells(browser, committed.read_bytes()), cells(browser, picture)
        )
        assert not differences, f"{taken} differs from {committed}: {'; '.join(differences)}"


def moved(before: dict[str, list[int]], now: dict[str, list[int]]) -> list[str]:
    """Return which parts are elsewhere than before, beyond some play; both are left, top, right, bottom by selector."""
    if before.keys() != now.keys():
        return [f"the parts are {sorted(now)}, and were {sorted(before)}"]
    return [
        f"{selector} is at {now[selector]}, and was at {place}"
        for selector, place in before.items()
        if any(abs(a - b) > _PLAY_PIXELS + _PLAY * a for a, b in zip(place, now[selector], strict=True))
    ]


def unlike(before: NDArray[np.float64], now: NDArray[np.float64]) -> list[str]:
    """Return in what two pictures of coarse cells differ visibly."""
    rows = min(len(before), len(now))
    if abs(len(before) - len(now)) > 1 + _PLAY * len(before):
        return [f"the page is {len(now)} cells high, and was {len(before)}"]
    difference = np.abs(before[:rows] - now[:rows]).max(axis=2)
    found = []
    if difference.mean() > _MEAN:
        found.append(f"the mean difference of colours is {difference.mean():.3f}")
    if (far := (difference > _FAR).mean()) > _FAR_CELLS:
        found.append(f"{far:.0%} of the cells have another colour")
    return found


def cells(browser: Browser, picture: bytes) -> NDArray[np.float64]:
    """Return a picture (PNG) as coarse cells: rows, columns, red, green and blue from 0 to 1."""
    driver = browser.driver
    page = driver.current_window_handle
    driver.switch_to.new_window("tab")  # the policy of the page does not apply here
    try:
        rows, values = driver.execute_async_script(_CELLS, base64.b64encode(picture).decode(), _COLUMNS)
    finally:
        driver.close()
        driver.switch_to.window(page)
    return np.array(values, dtype=np.float64).reshape(rows, _COLUMNS, 4)[:, :, :3] / 255
