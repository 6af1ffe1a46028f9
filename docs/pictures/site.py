"""The picture of the site's first screen in the docs, wide and as on a phone.

make docs
python docs/pictures/site.py docs/_build/html docs/pictures/site.png
"""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZES = (1280, 860), (390, 860)  # a laptop's window and a phone's
GAP = 24


def main() -> None:
    site, picture_path = Path(sys.argv[1]), Path(sys.argv[2])
    address = sys.argv[3] if len(sys.argv) > 3 else "index.html"
    shots = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for width, height in SIZES:
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme="light"
            )
            page.goto((site / address).resolve().as_uri())
            page.wait_for_timeout(500)
            shots.append(Image.open(io.BytesIO(page.screenshot())))
        browser.close()
    width = sum(shot.width for shot in shots) + GAP
    picture = Image.new("RGB", (width, shots[0].height), "#dfe3e6")
    picture.paste(shots[0], (0, 0))
    picture.paste(shots[1], (shots[0].width + GAP, 0))
    size = width * 3 // 4, picture.height * 3 // 4
    picture.resize(size, Image.Resampling.LANCZOS).save(picture_path, optimize=True)


if __name__ == "__main__":
    main()
