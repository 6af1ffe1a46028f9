"""A page that follows a store while it grows, served to this machine only."""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import threading
import urllib.parse
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from placecell.errors import InputError
from placecell.report.page.build import Page, build_page
from placecell.store import RunSet, Store, files
from placecell.study.known import known_measures
from placecell.study.records import RunSummary

MOST_CONNECTIONS = 32  # at a time; a page asks for one
SECONDS_TO_ASK = 10.0  # for a whole request; half of one would keep its thread for ever
WATCHED = ("status.json", "metrics.csv", "lazy_rich*")


class Live:
    """The page of a folder, built again when something in the folder has changed.

    Every finished run is measured once.

    Parameters ---------- folder : Path A folder of runs. build : callable Builds the page, as
    `build_page` does. **options Further arguments of `build`.
    """

    def __init__(
        self, folder: Path, build: Callable[..., Page] = build_page, **options: Any
    ) -> None:
        self.folder, self.build, self.options = folder, build, options
        self.seen: dict[str, RunSummary] = {}
        self.guard = threading.Lock()
        self.made: tuple[str, Page] | None = None

    def version(self) -> str:
        """Return a text that changes when a run or an analysis that the page shows changes.

        Returns
        -------
        str
        """
        stats = []
        for name in WATCHED:
            for path in sorted(self.folder.glob(f"*/{name}")):
                if not files.is_inside(path, self.folder):
                    continue
                with contextlib.suppress(OSError):  # removed since it was listed
                    stat = path.stat()
                    stats.append((str(path), stat.st_mtime_ns, stat.st_size))
        return f"{hash(tuple(stats)) & (2**64 - 1):x}"

    def page(self) -> tuple[str, Page]:
        """Return the page as the folder is now.

        Returns
        -------
        (str, Page)
            Version and page.
        """
        with self.guard:
            version = self.version()
            if self.made is None or self.made[0] != version:
                try:
                    store = Store(self.folder).run_set()
                except InputError as error:
                    if self.folder.exists() and not self.folder.is_dir():
                        raise
                    store = RunSet(str(self.folder), [], {"": f"{error} This page follows it."})
                known = known_measures(self.folder)
                self.made = (
                    version,
                    self.build(store, known=known, seen=self.seen, live=version, **self.options),
                )
            return self.made


class LiveServer(ThreadingHTTPServer):
    """A server of one page, on the loopback address, for those who know its token.

    Parameters
    ----------
    live : Live
        The page.
    port : int
        The port; 0 takes any free one.

    Attributes
    ----------
    token : str
        The first part of every path that is answered. Other users of this machine can reach the
        port, and do not know it.
    """

    daemon_threads = True

    def __init__(self, live: Live, port: int = 0) -> None:
        self.live, self.token = live, secrets.token_urlsafe(16)
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(("127.0.0.1", port), _Handler)
        self.hosts = tuple(f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost"))

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{self.hosts[0]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or hang up if too many connections are open."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a connection that was cut: the terminal is a sweep's."""


class _Handler(BaseHTTPRequestHandler):
    server: LiveServer
    timeout = SECONDS_TO_ASK

    def setup(self) -> None:
        super().setup()
        # `timeout` is for each piece: a request that drips in is cut off as a whole
        self.deadline = threading.Timer(self.timeout, self._hang_up)
        self.deadline.daemon = True
        self.deadline.start()

    def finish(self) -> None:
        self.deadline.cancel()
        with contextlib.suppress(OSError):
            super().finish()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        self.deadline.cancel()  # it was asked in time; the answer may take longer
        live, hosts = self.server.live, self.server.hosts
        # a page of another site could name this address as its own: only our own name is answered
        if self.headers.get("Host") not in hosts:
            return self.answer(
                HTTPStatus.FORBIDDEN, "text/plain; charset=utf-8", b"only as " + hosts[0].encode()
            )
        url = urllib.parse.urlsplit(self.path)
        token, _, name = url.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            return self.answer(
                HTTPStatus.FORBIDDEN,
                "text/plain; charset=utf-8",
                b"use the whole address that `placecell report --live` printed",
            )
        try:
            if name == "":
                return self.answer(
                    HTTPStatus.OK, "text/html; charset=utf-8", live.page()[1].html.encode()
                )
            if name == "news":
                if urllib.parse.parse_qs(url.query).get("have") == [live.version()]:
                    return self.answer(HTTPStatus.NO_CONTENT, "application/json", b"")
                parts = dict(live.page()[1].parts)
                return self.answer(
                    HTTPStatus.OK, "application/json", json.dumps(parts, allow_nan=False).encode()
                )
        except InputError as error:
            return self.answer(
                HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain; charset=utf-8", str(error).encode()
            )
        return self.answer(HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"nothing here")

    def answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the reader has gone
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a terminal beside a sweep has better things to show."""


def make_server(live: Live, port: int = 0) -> LiveServer:
    """Make a server of the page on the loopback address.

    Parameters
    ----------
    live : Live
        The page.
    port : int
        The port; 0 takes any free one.

    Returns
    -------
    LiveServer
    """
    try:
        return LiveServer(live, port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a port"
        raise InputError(
            f"port {port} cannot be had ({reason}); leave --port out to take any."
        ) from None
