"""A sweep on Ray: on a cluster, or on a Ray started for it that only this machine can reach."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from placecell.config import RunConfig
from placecell.errors import InputError
from placecell.plugins import outside, register_outside
from placecell.store import files, locks
from placecell.store.runs import finished, reuse
from placecell.sweep.backends.base import (
    Backend,
    Busy,
    Ended,
    Event,
    Job,
    Lost,
    MakeBackend,
    Step,
    Worker,
    data_key,
)
from placecell.sweep.backends.ray_connection import connect, first_line
from placecell.sweep.interrupt import Interrupt
from placecell.tasks.base import Examples
from placecell.train.memory import keep_memory

Files = dict[str, bytes]  # path below the store -> content
DEATHS = {
    "WorkerCrashedError": "its process died",
    "OutOfMemoryError": "its process was ended because its node ran out of memory",
    "NodeDiedError": "its node died",
}


def on_ray(address: str | None, cpus: float, gpus: float, workers: int | None) -> MakeBackend:
    """Return the back end of a Ray cluster.

    Parameters
    ----------
    address : str, optional
        HOST:PORT of the cluster, or `auto`. None: a Ray of this machine alone.
    cpus, gpus : float
        What each run asks for.
    workers : int, optional
        Number of runs worked on at a time, at most. None: as many as the cluster has room for.

    Returns
    -------
    callable
        What `placecell.sweep` takes as `backend`.
    """
    if importlib.util.find_spec("ray") is None:
        raise InputError('a sweep on Ray needs it: pip install "placecell[ray]".')
    for kind, amount, least in (("CPUs", cpus, "above 0"), ("GPUs", gpus, "at least 0")):
        if not math.isfinite(amount) or amount < 0 or (amount == 0 and kind == "CPUs"):
            raise InputError(f"the {kind} of a run must be {least}, not {amount:g}.")
        if amount > 1 and amount != int(amount):
            raise InputError(
                f"the {kind} of a run, when more than 1, must be a whole number, not {amount:g}."
            )
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}.")
    return partial(OnRay, address=address, asks={"CPU": cpus, "GPU": gpus}, workers=workers)


@dataclass
class _Task:
    """A run that Ray has been given. `lock` is the run's, held here while a node works on it in a
    folder of its own."""

    config: RunConfig
    lock: contextlib.ExitStack
    cancelled: bool = False


class OnRay(Backend):
    """Back end that gives runs to the nodes of a Ray cluster.

    Nodes that see the store (a shared file system) write into it. Others, recognised by not seeing
    a file that is put there during the sweep, get what the store has of a run and send its files
    back.
    """

    def __init__(
        self,
        job: Job,
        asked: Callable[[], bool],
        address: str | None,
        asks: Mapping[str, float],
        workers: int | None,
    ) -> None:
        if job.device == "auto" and not asks["GPU"]:
            # Ray would let such a run see GPUs that it gives to others
            job = replace(job, device="cpu")
        self.job, self.asked, self.asks, self.workers = job, asked, asks, workers
        self.tasks: dict[Any, _Task] = {}
        self.events: list[Event] = []
        self.shared = True  # until a node does not see the store
        self.token = job.out / f".ray-{secrets.token_hex(8)}"
        self.ray, self.started = connect(address, asks["CPU"], workers)
        try:
            if self.slots < 1:
                nodes = "; ".join(_words(node) for node in self._nodes())
                raise InputError(
                    f"a run asks for {_words(asks)}, more than any node of the Ray cluster has: "
                    f"{nodes}."
                )
            files.make_folder(job.out)
            files.write_bytes(self.token, b"")
            self.work = self.ray.remote(_work).options(
                num_cpus=asks["CPU"], num_gpus=asks["GPU"], max_retries=0
            )
            self.splits = {key: self.ray.put(splits) for key, splits in job.splits.items()}
            for module in job.plugins:  # other machines may not have it: its classes travel whole
                self.ray.cloudpickle.register_pickle_by_value(sys.modules[module])
            self.outside = self.ray.put(outside(job.plugins))
            self.board = _board(self.ray)
            self.progress = self.board.take.remote()
        except BaseException:
            self.__exit__(None, None, None)
            raise

    @property
    def slots(self) -> int:
        """Number of runs that the nodes have room for now, at most `workers`."""
        fit = sum(
            min(
                int(node.get(kind, 0.0) / amount + 1e-9)
                for kind, amount in self.asks.items()
                if amount
            )
            for node in self._nodes()
        )
        return fit if self.workers is None else min(fit, self.workers)

    def _nodes(self) -> list[dict[str, float]]:
        """The CPUs and GPUs of every node that is there now."""
        resources = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return [{kind: node[kind] for kind in ("CPU", "GPU") if kind in node} for node in resources]

    def start(self, config: RunConfig) -> None:
        """Give a run to the cluster."""
        if self.shared:
            self._submit(config, None, contextlib.ExitStack())
        else:
            self._send(config)

    def _submit(self, config: RunConfig, sent: Files | None, lock: contextlib.ExitStack) -> None:
        job = replace(self.job, splits={})
        task = self.work.remote(
            job, self.splits[data_key(config)], self.outside, config, self.token, sent, self.board
        )
        self.tasks[task] = _Task(config, lock)

    def _send(self, config: RunConfig) -> None:
        """Have the run made in a folder of a node's own, from what the store has of it, under its
        lock here."""
        out, folder = self.job.out, self.job.out / config.name
        wanted = [folder / "checkpoint.safetensors", folder / "environment.json"]
        wanted += [out / config.donor / "weights.safetensors"] if config.donor else []
        with contextlib.ExitStack() as lock:
            try:
                files.make_folder(folder)
                lock.enter_context(locks.lock(folder))
                if finished(folder):  # by another process, in the meantime
                    self.events.append(Ended(config.name, reuse(folder)))
                    return
                files.remove_left_over(folder)
                sent = {
                    str(path.relative_to(out)): path.read_bytes()
                    for path in wanted
                    if path.exists()
                }
            except locks.Busy:
                self.events.append(Busy(config.name))
            except (InputError, OSError) as error:
                self.events.append(Ended(config.name, None, f"{type(error).__name__}: {error}"))
            else:
                self._submit(config, sent, lock.pop_all())

    def wait(self, seconds: float) -> list[Event]:
        """Return what the nodes have reported."""
        if self.asked():
            for ref, task in self.tasks.items():
                if not task.cancelled:
                    task.cancelled = True
                    self.ray.cancel(ref, force=False)  # which the run hears as a Ctrl-C of its own
        if self.tasks:
            ready, _ = self.ray.wait(list(self.tasks), timeout=0 if self.events else seconds)
            self.events += [
                event for ref in ready for event in self._ended(ref, self.tasks.pop(ref))
            ]
        elif not self.events:
            time.sleep(seconds)  # no node has room now
        if self.ray.wait([self.progress], timeout=0)[0]:
            # the board died, and is put up again
            with contextlib.suppress(self.ray.exceptions.RayError):
                running = {task.config.name for task in self.tasks.values()}
                self.events += [
                    Step(*step)
                    for step in self.ray.get(self.progress).items()
                    if step[0] in running
                ]
            self.progress = self.board.take.remote()
        events, self.events = self.events, []
        return events

    def _ended(self, ref: Any, task: _Task) -> list[Event]:
        name, errors = task.config.name, self.ray.exceptions
        with task.lock:
            try:
                event, returned = self.ray.get(ref)
                if event is None:
                    self.shared = False
                    self._send(task.config)
                    return []
                if isinstance(event, Ended):
                    event = self._keep(event, returned)
            except errors.TaskCancelledError:  # before it began: left for the next time
                event = Busy(name)
            except errors.RayTaskError as error:
                event = Ended(
                    name, None, f"{type(error.cause).__name__}: {first_line(error.cause)}"
                )
            except errors.RayError as error:
                event = Lost(
                    name, DEATHS.get(type(error).__name__, f"it was lost ({first_line(error)})")
                )
            except InputError as error:
                event = Ended(name, None, f"{type(error).__name__}: {error}")
        return [event]

    def _keep(self, event: Ended, returned: Files) -> Event:
        """Write what a node sent back in the order of `run`: the status last, and then a done run
        has no checkpoint."""
        folder = self.job.out / event.name
        for name in sorted(returned, key=lambda name: name == "status.json"):
            files.write_bytes(folder / name, returned[name])
        if returned and "checkpoint.safetensors" not in returned:
            files.remove(folder / "checkpoint.safetensors")
        if event.result is None:
            return event
        if event.result.status == "interrupted" and not self.asked():
            return Lost(event.name, "its process was ended by a signal")  # by who runs the node
        return replace(event, result=replace(event.result, folder=folder))

    def __exit__(self, *exception: object) -> None:
        for ref, task in self.tasks.items():
            with contextlib.suppress(Exception):
                self.ray.cancel(ref, force=True)
            task.lock.close()
        files.remove(self.token)
        if self.started:
            self.ray.shutdown()


def _work(
    job: Job,
    splits: dict[str, Examples],
    plugins: dict[tuple[str, str], Any],
    config: RunConfig,
    token: Path,
    sent: Files | None,
    board: Any,
) -> tuple[Event | None, Files]:
    """One run in a process of Ray's: in the store, or with what was `sent` in a folder of its own,
    which is returned. No event means that the store is not seen from here."""
    if sent is None and not token.exists():
        return None, {}
    register_outside(plugins)
    torch.set_num_threads(job.threads)
    keep_memory()
    own = (
        tempfile.TemporaryDirectory(prefix="placecell-")
        if sent is not None
        else contextlib.nullcontext(job.out)
    )

    def tell(event: Event) -> None:
        if isinstance(event, Step):
            board.tell.remote(event.name, event.step)

    with Interrupt() as interrupt, own as place:
        out = Path(place)
        for name, content in (sent or {}).items():
            files.make_folder((out / name).parent)
            files.write_bytes(out / name, content)
        worker = Worker(replace(job, out=out, splits={data_key(config): splits}))
        event = worker.work(config, lambda state: not interrupt.asked, tell)
        made = sorted((out / config.name).glob("[!.]*")) if sent is not None else []
        return event, {path.name: path.read_bytes() for path in made}


def _board(ray: ModuleType) -> Any:
    """An actor where tasks say how far they have come. Its class is sent by value: its process
    needs no torch."""

    class Board:
        def __init__(self) -> None:
            self.steps: dict[str, int] = {}

        def tell(self, name: str, step: int) -> None:
            self.steps[name] = step

        def take(self) -> dict[str, int]:
            steps, self.steps = self.steps, {}
            return steps

    return ray.remote(Board).options(num_cpus=0, max_restarts=-1).remote()


def _words(resources: Mapping[str, float]) -> str:
    return (
        " and ".join(f"{amount:g} {kind}s" for kind, amount in resources.items() if amount)
        or "no CPUs"
    )
