"""The live page: it follows a store that grows, for this machine only, and ends when asked."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placecell.errors import InputError
from placecell.report.page import live as module
from placecell.report.page.live import Live, make_server


def ask(port: int, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    reply = answer.status, answer.read()
    connection.close()
    return reply


@pytest.fixture
def growing(tmp_path: Path, store: Path) -> Callable[[int], None]:
    """Puts the first so many runs of the sweep into `tmp_path / 'growing'`."""
    folders = sorted(path for path in store.iterdir() if path.is_dir())

    def grow(count: int) -> None:
        for folder in folders[:count]:
            to = tmp_path / "growing" / folder.name
            if not to.exists():
                shutil.copytree(folder, tmp_path / folder.name)
                to.parent.mkdir(exist_ok=True)
                (tmp_path / folder.name).rename(to)

    return grow


@pytest.fixture
def served(
    tmp_path: Path, known: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Live, int]]:
    monkeypatch.setattr(module, "known_measures", lambda folder: known)
    live = Live(tmp_path / "growing")
    with make_server(live) as server:
        thread = threading.Thread(
            target=lambda: server.serve_forever(poll_interval=0.05), daemon=True
        )
        thread.start()
        yield live, server.server_port
        server.shutdown()
        thread.join(10)
        assert not thread.is_alive()


def test_news_come_when_the_store_changes_and_only_then(
    served: tuple[Live, int], growing: Any
) -> None:
    growing(2)
    live, port = served
    status, page = ask(port, "/")
    assert status == 200
    assert b"connect-src &#39;self&#39;" in page
    assert b"data-live" in page
    have = live.version()
    assert ask(port, f"/news?have={have}") == (204, b"")
    growing(3)
    status, body = ask(port, f"/news?have={have}")
    assert status == 200
    news = json.loads(body)
    assert news["data"]["version"] == live.version() != have
    assert "3 runs of the task latin_square" in news["main"]
    assert ask(port, f"/news?have={news['data']['version']}")[0] == 204


def test_each_run_is_measured_once(
    served: tuple[Live, int], growing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from placecell.study import summary

    measured: list[str] = []
    real = summary.read_run
    monkeypatch.setattr(
        summary, "read_run", lambda r, *rest: (measured.append(r.config.name), real(r, *rest))[1]
    )
    live, _ = served
    for count in (1, 3, 4):
        growing(count)
        live.page()
        live.page()
    assert len(measured) == len(set(measured)) == 4


def test_a_folder_that_is_empty_or_not_there_yet_is_waited_for(
    served: tuple[Live, int], growing: Any
) -> None:
    live, port = served
    status, page = ask(port, "/")
    assert status == 200
    assert b"no such folder of runs" in page
    live.folder.mkdir()
    assert b"This page follows it." in ask(port, "/")[1]
    growing(1)
    assert b"1 run of the task latin_square" in ask(port, "/")[1]


def test_only_this_machine_and_only_by_its_own_name(served: tuple[Live, int], growing: Any) -> None:
    growing(1)
    _, port = served
    assert ask(port, "/", host="evil.example")[0] == 403
    assert ask(port, "/", host=f"localhost:{port}")[0] == 200
    assert ask(port, "/../../etc/passwd")[0] == 404
    assert ask(port, "/status.json")[0] == 404
    with make_server(Live(Path("x"))) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_port_that_cannot_be_had_is_named(served: tuple[Live, int]) -> None:
    for port in (served[1], 99999):
        with pytest.raises(InputError, match=f"port {port} cannot be had"):
            make_server(Live(Path("x")), port)


def test_an_open_page_takes_in_what_is_new_and_stays_where_it_is(
    served: tuple[Live, int], growing: Any, tab: Any
) -> None:
    growing(6)
    _, port = served
    one = tab()
    page = one.page
    page.goto(f"http://127.0.0.1:{port}/")
    assert "6 runs of the task" in page.locator("#what").inner_text()
    one.see_all()
    label = page.locator("#tables-a option").last.inner_text()
    page.locator("#tables-a").select_option(label)
    page.locator("#training-log").check()
    page.locator("#tables-step").focus()
    page.keyboard.press("Home")
    page.evaluate("scrollTo(0, 1500)")
    growing(8)
    one.until("document.getElementById('what').innerText.includes('8 runs of the task')", 60)
    assert page.locator("#tables-a").input_value() == label
    assert page.locator("#training-log").is_checked()
    assert page.locator("#tables-step").input_value() == "0"
    assert abs(page.evaluate("scrollY") - 1500) < 5
    one.see_all()
    assert f"{label}, seed 0, step 0" in page.locator("#tables-a-says").inner_text()
    assert one.errors == []
    assert all(url.startswith(f"http://127.0.0.1:{port}/") for url in one.requests)


def test_the_command_serves_follows_and_ends_with_ctrl_c(tmp_path: Path, growing: Any) -> None:
    growing(1)
    command = [
        sys.executable,
        "-m",
        "placecell",
        "report",
        str(tmp_path / "growing"),
        "--live",
        "--json",
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(json.loads(line)["address"].rstrip("/").rsplit(":", 1)[1])
        assert b"1 run of the task" in ask(port, "/")[1]
        growing(2)
        assert b"2 runs of the task" in ask(port, "/")[1]
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - started < 20
        assert process.returncode == 0
        assert "Traceback" not in err
        assert "no longer served" in err
    finally:
        process.kill()
        process.wait()
