"""The live page: it follows a store that grows, for this machine only, and ends when asked."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placecell.errors import InputError
from placecell.report.page import live as module
from placecell.report.page.build import build_page
from placecell.report.page.live import MOST_CONNECTIONS as MOST
from placecell.report.page.live import Live, make_server
from placecell.store import Store
from placecell.study.known import known_measures


def ask(address: str, path: str = "", host: str | None = None) -> tuple[int, bytes]:
    """Ask for a path below the page's address, or from the root if it begins with a slash."""
    url = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=60)
    path = path if path.startswith("/") else url.path + path
    connection.request("GET", path, headers={"Host": host or url.netloc})
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
) -> Iterator[tuple[Live, str]]:
    monkeypatch.setattr(module, "known_measures", lambda folder: known)
    live = Live(tmp_path / "growing")
    with make_server(live) as server:
        thread = threading.Thread(
            target=lambda: server.serve_forever(poll_interval=0.05), daemon=True
        )
        thread.start()
        yield live, server.address
        server.shutdown()
        thread.join(10)
        assert not thread.is_alive()


def test_news_come_when_the_store_changes_and_only_then(
    served: tuple[Live, str], growing: Any
) -> None:
    growing(2)
    live, address = served
    status, page = ask(address)
    assert status == 200
    assert b"connect-src &#39;self&#39;" in page
    assert b"data-live" in page
    have = live.version()
    assert ask(address, f"news?have={have}") == (204, b"")
    growing(3)
    status, body = ask(address, f"news?have={have}")
    assert status == 200
    news = json.loads(body)
    assert news["data"]["version"] == live.version() != have
    assert "3 runs of the task latin_square" in news["main"]
    assert ask(address, f"news?have={news['data']['version']}")[0] == 204


def test_each_run_is_measured_once(
    served: tuple[Live, str], growing: Any, monkeypatch: pytest.MonkeyPatch
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
    served: tuple[Live, str], growing: Any
) -> None:
    live, address = served
    status, page = ask(address)
    assert status == 200
    assert b"no such folder of runs" in page
    live.folder.mkdir()
    assert b"This page follows it." in ask(address)[1]
    growing(1)
    assert b"1 run of the task latin_square" in ask(address)[1]


def test_only_this_machine_and_only_by_its_own_name(served: tuple[Live, str], growing: Any) -> None:
    growing(1)
    _, address = served
    port = urllib.parse.urlsplit(address).port
    assert ask(address, host="evil.example")[0] == 403
    assert ask(address, host=f"localhost:{port}")[0] == 200
    assert ask(address, "../../etc/passwd")[0] == 404
    assert ask(address, "status.json")[0] == 404
    with make_server(Live(Path("x"))) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_without_its_token_nothing_is_shown(served: tuple[Live, str], growing: Any) -> None:
    growing(1)
    _, address = served
    token = urllib.parse.urlsplit(address).path.strip("/")
    assert len(token) >= 20
    for path in ("/", "/news?have=x", f"/{token[:-1]}/", f"/{token}x/", "/%00/"):
        status, body = ask(address, path)
        assert status == 403, path
        assert b"latin_square" not in body
    with make_server(Live(Path("x"))) as one, make_server(Live(Path("x"))) as other:
        assert one.token != other.token


@pytest.mark.parametrize("drip", [False, True], ids=["half a request", "drop by drop"])
def test_half_sent_requests_are_cut_off_and_bounded(
    served: tuple[Live, str], growing: Any, monkeypatch: pytest.MonkeyPatch, drip: bool
) -> None:
    growing(1)
    _, address = served
    assert ask(address)[0] == 200
    monkeypatch.setattr(module._Handler, "timeout", 1.0)
    port = urllib.parse.urlsplit(address).port
    before = threading.active_count()
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(3 * MOST)]
    try:
        for one in silent:
            with contextlib.suppress(OSError):
                one.sendall(b"GET / HTTP/1.1\r\nHo")
        time.sleep(0.3)
        assert threading.active_count() - before <= 2 * MOST  # a thread and a timer for each
        end = time.monotonic() + 10
        while threading.active_count() > before and time.monotonic() < end:
            for one in silent if drip else []:
                with contextlib.suppress(OSError):
                    one.send(b"x")
            time.sleep(0.2)
        assert threading.active_count() <= before
        assert ask(address)[0] == 200
    finally:
        for one in silent:
            one.close()


def test_a_link_out_of_the_store_is_not_followed(tmp_path: Path, store: Path, known: Any) -> None:
    folder = Path(shutil.copytree(store, tmp_path / "store"))
    secret = tmp_path / "secret"
    secret.mkdir()
    run = next(path for path in folder.iterdir() if path.is_dir())
    (secret / "runs.csv").write_text(f"run,table/relation\n{run.name},0.123\n")
    (secret / "lazy_rich_summary.csv").write_text("secret words\n")
    (folder / "analysis").symlink_to(secret)
    assert known_measures(folder) == {}
    page = build_page(Store(folder).run_set(), known=known)
    assert "secret words" not in page.html
    assert "a link out of the folder of runs, which is not followed" in page.html
    version = Live(folder).version()
    (secret / "lazy_rich_summary.csv").write_text("other secret words\n")
    assert Live(folder).version() == version
    (folder / "analysis").unlink()
    secret.rename(folder / "analysis")
    assert run.name in known_measures(folder)


def test_a_port_that_cannot_be_had_is_named(served: tuple[Live, str]) -> None:
    for port in (urllib.parse.urlsplit(served[1]).port, 99999):
        with pytest.raises(InputError, match=f"port {port} cannot be had"):
            make_server(Live(Path("x")), port)


def test_an_open_page_takes_in_what_is_new_and_stays_where_it_is(
    served: tuple[Live, str], growing: Any, tab: Any
) -> None:
    growing(6)
    _, address = served
    one = tab()
    page = one.page
    page.goto(address)
    assert "6 runs of the task" in page.locator("#what").text_content()
    one.see_all()
    label = page.locator("#tables-a option").last.inner_text()
    page.locator("#tables-a").select_option(label)
    page.locator("#training-log").check()
    page.locator("#tables-step").focus()
    page.keyboard.press("Home")
    page.evaluate("scrollTo(0, 1500)")
    growing(8)
    one.until("document.getElementById('what').textContent.includes('8 runs of the task')", 60)
    assert page.locator("#tables-a").input_value() == label
    assert page.locator("#training-log").is_checked()
    assert page.locator("#tables-step").input_value() == "0"
    assert abs(page.evaluate("scrollY") - 1500) < 5
    one.see_all()
    assert f"{label}, seed 0, step 0" in page.locator("#tables-a-plot").get_attribute("aria-label")
    assert one.errors == []
    assert all(url.startswith(address) for url in one.requests)


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
        address = json.loads(line)["address"]
        assert b"1 run of the task" in ask(address)[1]
        growing(2)
        assert b"2 runs of the task" in ask(address)[1]
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
