"""The journal of a manager on Ray: what it remembers, kept in the cluster's control store. It outlives every process of the run.

A journal is one whole record, and batches of the changes since, each under a key of its own. A manager writes a change before
it answers the request. If the store does not take the change in time, the caller gets an error, and the change is written with
the next batch. A write whose answer is lost may be there or not: readers handle both in the same way.

Each life of a manager has an epoch. It claims the epoch, reads the journal of the life before, and writes under keys of its
own. A life that finds the next epoch claimed is over: its last write may have been read or not, so it confirms nothing. A
manager that Ray wrongly takes for dead can therefore neither damage nor promise anything.

The keys begin with the job of the run's driver. The next run removes those of a driver that was killed."""

import asyncio
import importlib
import json
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any, TypeVar

from roost._plan.errors import EngineError, fault
from roost._ray.join import is_answering, state

log = logging.getLogger("roost")

NAMESPACE = "roost"
TAIL_MAX = 1000  # batches after which the whole is written again
TAIL_BYTES = 1 << 20
KEEP_SECONDS = 10.0  # for which a write that fails is tried again
PAUSE = 0.2
OUTSIDE_SECONDS = 1.0  # for each step of what is asked of a cluster that was left

Value = TypeVar("Value")

# ["ask", owner, who, request], ["answered", owner, number, answer], ["gone", owner], or one of reservations.py
Change = list[Any]
Trace = tuple[str, str | None, str]  # address and id of a cluster, and the job of a driver there


def store() -> Any:
    """The key-value store of the cluster. Ray's own libraries keep their state there; it has no public name."""
    from ray.experimental import internal_kv

    return internal_kv


class OverError(EngineError):
    """A life of a manager whose next one has begun."""


def persist(write: Callable[..., Value], *args: Any) -> Value:
    """Tries again for a while."""
    deadline = time.monotonic() + KEEP_SECONDS
    while True:
        try:
            return write(*args)
        except OverError:
            raise
        except Exception as error:
            if time.monotonic() >= deadline:
                raise fault(
                    EngineError,
                    f"what the managers of this run know is not kept: {str(error).partition(chr(10))[0]}",
                    hint="Ray's control store does not take it: `ray status` tells how the cluster is; what was asked may have been done",
                ) from error
        time.sleep(PAUSE)


class Journal:
    """Of one life of a manager; used on its event loop, after it was opened."""

    def __init__(self, job: str, namespace: str, manager: str) -> None:
        self._prefix = f"{job}/{namespace}/{manager}/"
        self._claim = secrets.token_hex(8).encode()
        self._edition = 0  # the last that was tried; batches are of one, and a whole has all of those before its own
        self._old: list[str] = []  # what keys begin with that the next whole makes useless
        self._batches = self._bytes = 0  # since then
        self._pending: list[Change] = []
        self._added = self._kept = self._refused = 0
        self._lock = asyncio.Lock()
        self.epoch = 0  # which life of the manager this is
        self.is_over = False  # another life has begun
        self._is_closed = False

    def open(self) -> list[Change]:
        """Begins the next life: the changes that make what the ones before remembered."""
        persist(self._begin_life)
        changes: list[Change] = persist(self._read)
        persist(self._write, changes)
        return changes

    # --- lives

    def _life(self, epoch: int) -> str:
        return f"{self._prefix}life.{epoch:08}"

    def _begin_life(self) -> None:
        """Of several that claim an epoch at the same time one has it, and the others the next ones."""
        claimed = [
            int(key.decode().rpartition(".")[2])
            for key in store()._internal_kv_list(f"{self._prefix}life.", namespace=NAMESPACE)
        ]
        epoch = max(claimed, default=0)
        if (
            epoch and store()._internal_kv_get(self._life(epoch), namespace=NAMESPACE) == self._claim
        ):  # the answer was lost
            self.epoch = epoch
            return
        while store()._internal_kv_put(self._life(epoch + 1), self._claim, overwrite=False, namespace=NAMESPACE):
            epoch += 1
        self.epoch = epoch + 1

    def _check_life(self) -> None:
        self.is_over = self.is_over or bool(
            store()._internal_kv_exists(self._life(self.epoch + 1), namespace=NAMESPACE)
        )
        if self.is_over:
            raise fault(
                OverError,
                f"this manager is of epoch {self.epoch}, and the next one has begun",
                hint="ask again: the next one knows what was kept",
            )

    # --- what is kept

    def _read(self) -> list[Change]:
        """What the last life has left that came as far as its first whole."""
        found: dict[int, dict[str, str]] = {}
        for key in store()._internal_kv_list(self._prefix, namespace=NAMESPACE):
            epoch, _, name = key.decode().removeprefix(self._prefix).partition("/")
            if name and int(epoch) != self.epoch:
                found.setdefault(int(epoch), {})[name] = key.decode()
        self._old = [self._keys(epoch) for epoch in sorted(found)]
        last = max((epoch for epoch, names in found.items() if epoch < self.epoch and "whole" in names), default=None)
        if last is None:
            return []
        whole = json.loads(store()._internal_kv_get(found[last].pop("whole"), namespace=NAMESPACE))
        changes: list[Change] = whole["changes"]
        batches = {tuple(map(int, name.split("."))): key for name, key in found[last].items()}
        for (edition, _), key in sorted(batches.items()):
            if edition >= whole["edition"]:
                changes += json.loads(store()._internal_kv_get(key, namespace=NAMESPACE))
        return changes

    def _keys(self, epoch: int) -> str:
        return f"{self._prefix}{epoch:08}/"

    def _tail(self, edition: int) -> str:
        return f"{self._keys(self.epoch)}{edition}."

    def _put(self, key: str, value: Any) -> int:
        """Kept when this returns: a life that begins later finds it, and none had begun when it was there."""
        text = json.dumps(value, ensure_ascii=False).encode()
        store()._internal_kv_put(key, text, overwrite=True, namespace=NAMESPACE)
        self._check_life()
        return len(text)

    def _write(self, changes: list[Change]) -> None:
        """Batches are of the new edition from here on, whether or not its whole is there: a reader takes those of the
        edition that it finds and of later ones."""
        self._old.append(self._tail(self._edition))
        self._edition += 1
        self._batches = self._bytes = 0
        self._put(self._keys(self.epoch) + "whole", {"edition": self._edition, "changes": changes})
        while self._old:
            store()._internal_kv_del(self._old[-1], del_by_prefix=True, namespace=NAMESPACE)
            self._old.pop()

    async def add(self, *changes: Change) -> None:
        """They are kept when this returns, and so is all that was added before, also where nothing is added now. What comes
        while one is written goes into the next batch together."""
        self._pending += changes
        self._added += len(changes)
        mine = self._added
        async with self._lock:
            if self._kept >= mine or self._is_closed:
                return
            if changes and self._refused >= mine:
                raise fault(
                    EngineError,
                    "what the managers of this run know is not kept",
                    hint="Ray's control store does not take it: `ray status` tells how the cluster is",
                )
            count = self._added
            self._bytes += await self._try(self._put, f"{self._tail(self._edition)}{self._batches:08}", self._pending)
            self._batches += 1
            self._kept = count

    async def tidy(self, remember: Callable[[], list[Change]]) -> None:
        """Writes the whole again when there are many changes since. `remember` returns all that the manager knows now."""
        if self._batches < TAIL_MAX and self._bytes < TAIL_BYTES:
            return
        async with self._lock:
            if self._is_closed or (self._batches < TAIL_MAX and self._bytes < TAIL_BYTES):
                return  # another task has just done it
            count = self._added
            try:
                await self._try(self._write, remember())
                self._kept = count
            except OverError:
                raise
            except EngineError as error:  # the changes themselves are kept
                log.warning("%s", error)

    async def close(self) -> None:
        """The run has ended: nothing is written any more when this returns, and what is kept can be forgotten."""
        async with self._lock:
            self._is_closed = True

    async def _try(self, write: Callable[..., Value], *args: Any) -> Value:
        """What is pending is written with it, or stays so."""
        writing, self._pending = self._pending, []
        try:
            return await asyncio.to_thread(persist, write, *args)
        except BaseException:
            self._pending = writing + self._pending
            self._refused = self._added  # callers that wait for the lock fail at once, without another wait
            raise


def sweep() -> None:
    """What drivers left that were killed."""
    # Keys before jobs: a run that begins in between has no keys yet, or is among the jobs.
    jobs = {key.decode().partition("/")[0] for key in store()._internal_kv_list("", namespace=NAMESPACE)}
    for job in jobs - {entry["JobID"] for entry in state().jobs() if not entry.get("IsDead")}:
        forget(job)


def forget(job: str) -> None:
    store()._internal_kv_del(f"{job}/", del_by_prefix=True, namespace=NAMESPACE)


def trace_of(ray: Any) -> Trace:
    """Where the journals of this driver's run are, for when it is no longer in the cluster."""
    context = ray.get_runtime_context()
    known = getattr(ray._private.worker.global_worker.node, "cluster_id", None)  # None: of another Ray than was seen
    return context.gcs_address, known.hex() if known is not None else None, context.get_job_id()


def forget_from_outside(address: str, cluster_id: str | None, job: str) -> None:
    """As `forget`, also by a process that has left the cluster. Returns within seconds: a cluster that is gone has forgotten, and
    in one that is silent the next run sweeps. Without the cluster's id Ray's client would ask for it first, for 40 seconds."""
    try:
        if is_answering(address, OUTSIDE_SECONDS):
            client = importlib.import_module("ray._raylet").GcsClient(address=address, cluster_id=cluster_id)
            client.internal_kv_del(f"{job}/".encode(), True, NAMESPACE.encode(), timeout=OUTSIDE_SECONDS)
    except Exception as error:
        log.info("what the managers kept stays in the control store: %s", error)
