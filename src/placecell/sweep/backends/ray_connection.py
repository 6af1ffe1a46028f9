"""Ray, connected to a cluster or started on this machine alone."""

from __future__ import annotations

import logging
import math
import os
import secrets
import signal
import socket
from types import ModuleType
from typing import Any

from placecell.errors import InputError

LOOPBACK = "127.0.0.1"
# of HTTP/2, with an empty frame of settings
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"


def connect(address: str | None, cpus: float, workers: int | None) -> tuple[ModuleType, bool]:
    """Return the module ray, connected to a cluster.

    Parameters
    ----------
    address : str, optional
        HOST:PORT or `auto`. None: start a Ray that listens on the loopback alone.
    cpus : float
        CPUs of each run.
    workers : int, optional
        Number of runs at a time.

    Returns
    -------
    module
        ray.
    bool
        Whether it was connected here, and so has to be shut down here.
    """
    if address is not None:
        _answers(address)
    # of connecting, 35 s each
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_NUM_REDIS_GET_RETRIES": "1"}
    settings["RAY_DEDUP_LOGS_SKIP_REGEX"] = (
        ".*"  # or Ray writes about dead workers to standard output
    )
    if address is None or address.startswith((LOOPBACK, "localhost")):
        settings["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = (
            "0"  # or Ray takes a network card's address for 127.0.0.1
        )
    # or Ray puts a token into the home folder
    if address is None and "RAY_AUTH_MODE" not in os.environ:
        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)  # which Ray reads as it is imported
    import ray

    if ray.is_initialized():
        return ray, False
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        many = (os.cpu_count() or 1) if workers is None else math.ceil(workers * cpus)
        options |= {"num_cpus": many, "include_dashboard": False, "_node_ip_address": LOOPBACK}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(address or "local", **options)
    except (OSError, RuntimeError, ValueError) as error:
        hint = " (one that asks for a token needs RAY_AUTH_MODE=token here)" if address else ""
        raise InputError(
            f"no Ray at {address or 'this machine'}{hint}: {first_line(error)}"
        ) from None
    finally:
        for number, handler in handlers.items():  # Ray's would end the driver at the first SIGTERM
            signal.signal(number, handler)
    if address is None and ray.util.get_node_ip_address() != LOOPBACK:
        ray.shutdown()
        raise InputError(
            "Ray was imported before placecell could bind it to this machine; import placecell's "
            "first."
        )
    return ray, True


def _answers(address: str) -> None:
    """See that something there speaks HTTP/2, as Ray does: Ray itself would try for many
    minutes."""
    host, _, port = address.rpartition(":")
    if address != "auto" and not (host and "://" not in host and port.isdecimal()):
        raise InputError(f"the address of a Ray cluster is HOST:PORT or auto, not {address!r}.")
    if address == "auto":
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as line:
            line.sendall(HELLO)
            answer = line.recv(9)
    except (OSError, OverflowError) as error:
        raise InputError(f"no Ray cluster answers at {address} ({error}).") from None
    if answer[3:4] != HELLO[-6:-5]:
        raise InputError(f"what answers at {address} is not Ray.")


def first_line(error: object) -> str:
    """Return the first line of what an error says."""
    return str(error or "").strip().split("\n")[0]
