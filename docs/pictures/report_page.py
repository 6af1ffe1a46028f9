"""The picture of the report page: what is compared and the picture of the tables, beside the
sections that follow.

placecell demo
python docs/pictures/report_page.py runs/demo/report.html docs/pictures/report_page.png
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]
WIDTH, GAP = 960, 24


def main() -> None:
    page_path, picture_path = Path(sys.argv[1]), Path(sys.argv[2])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000}, color_scheme="light")
        page.goto(page_path.resolve().as_uri())
        for figure in page.query_selector_all("figure[data-kind]"):
            figure.scroll_into_view_if_needed()
            page.wait_for_timeout(500)
        page.evaluate("scrollTo(0, 0)")
        whole = Image.open(io.BytesIO(page.screenshot(full_page=True)))
        tables = page.locator("#tables").bounding_box()
        rest = page.locator("#headline-h").bounding_box()
        browser.close()
    assert tables is not None
    assert rest is not None
    height, below = int(tables["y"] + tables["height"]) + GAP, int(rest["y"]) - GAP // 2
    first = whole.crop((0, 0, WIDTH, height))
    then = whole.crop((0, below, WIDTH, below + height))
    picture = Image.new("RGB", (2 * WIDTH + GAP, height), "#dfe3e6")
    picture.paste(first, (0, 0))
    picture.paste(then, (WIDTH + GAP, 0))
    size = picture.width * 3 // 4, height * 3 // 4
    picture.resize(size, Image.Resampling.LANCZOS).save(picture_path, optimize=True)


if __name__ == "__main__":
    main()
