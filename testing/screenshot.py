# SPDX-License-Identifier: BSD-2-Clause
"""Takes a picture of a page, or of one element of it, in headless Chromium: the README's picture is made so.

python -m testing.screenshot out/demo/report.html --to docs/images/overhead.png [--height 900] [--dark]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from testing import browser


def main() -> None:
    """Take the picture; an AssertionError names what the page did wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m testing.screenshot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path, help="HTML file")
    parser.add_argument(
        "--to", type=Path, required=True, help="PNG file to write, or PDF for the page as it is printed"
    )
    parser.add_argument("--width", type=int, default=browser.WIDE, help="of the window, in pixels")
    parser.add_argument("--height", type=int, help="cut the picture there, in pixels")
    parser.add_argument("--dark", action="store_true", help="for a reader who prefers dark pages")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, browser.running(Path(directory)) as window:
        window.show(options.width, dark=options.dark)
        window.open(options.page.resolve().as_uri())
        picture = window.printed() if options.to.suffix == ".pdf" else window.picture(options.height)
        assert not window.faults(), window.faults()
    options.to.parent.mkdir(parents=True, exist_ok=True)
    options.to.write_bytes(picture)
    print(f"wrote {options.to}")


if __name__ == "__main__":
    main()
