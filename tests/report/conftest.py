"""A small real sweep, runs made to show each failure, and a real browser; each made once for all
tests here."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placecell.config import RunConfig
from placecell.report.page.build import Page, build_page
from placecell.store import Store
from placecell.sweep import grid
from placecell.train import RunResult, make_task, run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SMALL = {
    "task": "latin_square",
    "data": {"n_train": 64, "n_valid": 16, "n_test": 60},
    "model": {"width": 16, "depth": 2, "heads": 2},
    "train": {"steps": 24, "eval_every": 6, "batch_size": 32, "lr": 3e-3},
}
GRIDS = [{"encoding": "learnable", "sigma": [0.1, 0.5, 2.0]}, {"encoding": "sinusoidal", "axes": 2}]


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep: three σ and the true encoding, two seeds each."""
    out = tmp_path_factory.mktemp("store")
    configs = grid(RunConfig.from_dict(SMALL), GRIDS, {}, seeds=2)
    task = make_task(configs[0])
    splits = task.splits()
    for config in configs:
        run(config, out, task=task, splits=splits)
    return out


@pytest.fixture
def copy(store: Path, tmp_path: Path) -> Path:
    """The same sweep, to be changed."""
    return Path(shutil.copytree(store, tmp_path / "store"))


@pytest.fixture(scope="session")
def page(store: Path) -> Page:
    return build_page(Store(store).run_set())


@pytest.fixture(scope="session")
def known(page: Page) -> dict[str, dict[str, float]]:
    """What was measured of the sweep's tables, so that it is measured once."""
    assert page.summary is not None
    return {
        run.result.config.name: {
            name: value for name, value in run.values.items() if name.startswith("table/")
        }
        for run in page.summary.runs
    }


@pytest.fixture(scope="session")
def page_file(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page.write(tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., RunResult]:
    """A real run of seconds with settings overridden, in a folder of its own."""
    out = tmp_path_factory.mktemp("tiny")
    data: dict[str, Any] = {}

    def make(**overrides: Any) -> RunResult:
        config = RunConfig.from_dict(SMALL).override({"heads": 1} | overrides)
        task = make_task(config)
        key = repr(config.data)
        data.setdefault(key, task.splits())
        return run(config, out, task=task, splits=data[key])

    return make


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("chromium is not installed; `make test` installs it where it can")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


class Tab:
    """A tab that keeps what a page should not do: complain, or ask the network for anything."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(
            **({"viewport": {"width": 1100, "height": 900}} | options)
        )
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on(
            "console",
            lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None,
        )
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.refused: list[str] = []
        self.page.on("requestfailed", lambda r: self.refused.append(f"{r.url} {r.failure}"))
        self.page.on("dialog", lambda d: (self.errors.append(f"dialog: {d.message}"), d.dismiss()))

    def open(self, path: Path) -> Any:
        self.page.goto(path.as_uri())
        return self.page

    def see_all(self) -> None:
        """Scroll through, so that every figure is drawn."""
        for figure in self.page.query_selector_all("figure[data-kind]"):
            figure.scroll_into_view_if_needed()
        self.until("document.querySelectorAll('.plot:not(.js-plotly-plot)').length === 0")

    def until(self, condition: str, seconds: float = 20) -> None:
        """Wait for a condition on the page; playwright's own way of waiting needs `unsafe-eval`."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, f"never came: {condition}"
            self.page.wait_for_timeout(50)


@pytest.fixture
def tab(browser: Any) -> Iterator[Callable[..., Tab]]:
    made: list[Tab] = []

    def make(**options: Any) -> Tab:
        made.append(Tab(browser, **options))
        return made[-1]

    yield make
    for one in made:
        one.context.close()
