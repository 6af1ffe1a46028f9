"""How long a report of 200 runs takes to open, and how large it is, beside an empty page in the
same browser.

    python benchmarks/report_page.py FOLDER

FOLDER is a store with at least one finished run; its runs are repeated under new seeds until there
are 200."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from placecell.report.page.build import build_page
from placecell.store import RunSet, Store
from placecell.study.known import known_measures
from placecell.study.records import RunSummary
from placecell.study.summary import measure

RUNS, REPEATS = 200, 7
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
]


def many(folder: Path) -> tuple[RunSet, dict[str, RunSummary]]:
    """The runs of a folder, repeated under other seeds, with what was measured of them."""
    found = measure(Store(folder).run_set().results, str(folder), known=known_measures(folder))
    results, seen = [], {}
    for number in range(RUNS):
        run = found.runs[number % len(found.runs)]
        seed = run.result.config.seed + 1000 * (number // len(found.runs))
        result = replace(run.result, config=replace(run.result.config, seed=seed))
        results.append(result)
        seen[result.config.name] = replace(run, result=result)
    return RunSet(str(folder), results), seen


def opening(browser: Browser, path: Path) -> tuple[float, float, float]:
    """Seconds until there is text, until all is loaded and the figures on screen are drawn, and of
    processor time that the page's main thread took (which other work on the machine does not change
    much)."""
    page = browser.new_page()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(path.as_uri())
    drawn = page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => "
        "done(performance.now()))))"
    )
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    text = page.evaluate(
        "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
    page.close()
    return text / 1000, drawn / 1000, found["TaskDuration"]


def main() -> None:
    store, seen = many(Path(sys.argv[1]))
    page = build_page(store, seen=seen)
    data = len(json.dumps(page.parts["data"]).encode())
    print(
        f"{RUNS} runs: page {len(page.html.encode()) / 1e6:.1f} MB, of which data "
        f"{data / 1e6:.1f} MB"
    )
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        full, empty = page.write(Path(folder) / "full.html"), Path(folder) / "empty.html"
        empty.write_text("<!doctype html><title>empty</title><p>empty")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        times = {
            path.stem: [opening(browser, path) for _ in range(REPEATS)] for path in (empty, full)
        }
        browser.close()
    for name, found in times.items():
        text, drawn, work = (statistics.median(values) for values in zip(*found, strict=True))
        print(
            f"{name}: text after {text:.2f} s, figures after {drawn:.2f} s, processor {work:.2f} "
            f"s (medians)"
        )


if __name__ == "__main__":
    main()
