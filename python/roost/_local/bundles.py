"""Placement groups of roost.slime on this machine: accelerators of a Cluster that a group holds, and trainers on them.

Only this process uses the nodes of its Cluster, so a group is a note of which accelerators are taken."""

import contextlib
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_futures
from dataclasses import replace
from typing import Any

from roost import _roost
from roost._local.engine import LocalEngine, wait_ready
from roost._local.group import LocalGroup
from roost._plan.cluster import PlanningCluster
from roost._plan.config import environment
from roost._plan.errors import EngineError, Timeout, fault, warn
from roost._plan.strategy import FlexiblePlacementStrategy
from roost._work.bundles import Bundle, LocalReference, PlacementGroup, ReserveRequest, Seat, TrainerRequest
from roost._work.call import Answered, Call, CallSite, Handle, Outcome, wait_named
from roost._work.cluster import Cluster
from roost._work.engine import LaunchRequest, Surroundings
from roost._work.group import GROUPS

GONE = "make the placement groups again with create_placement_groups()"
SAY_EVERY = 5.0

Device = tuple[int, int]  # the rank of the node, and the accelerator's on it

taken: "weakref.WeakKeyDictionary[PlanningCluster, set[Device]]" = weakref.WeakKeyDictionary()
changed = threading.Condition()  # a group was removed
numbers = itertools.count()


def reserve(cluster: PlanningCluster | None, request: ReserveRequest) -> "LocalReservation":
    assert isinstance(cluster, Cluster)
    devices = all_devices(cluster)
    if len(devices) < request.num_bundles:
        raise fault(
            _roost.RankError,
            f"the placement group needs {request.num_bundles} accelerators, but the cluster has {len(devices)}",
            hint='make the Cluster larger, cluster="2x8", or ask for less',
            code="fit",
        )
    return LocalReservation(cluster, take_devices(cluster, devices, request))


def all_devices(cluster: Cluster) -> list[Device]:
    """In node order."""
    return [
        (node, device)
        for node in range(cluster.num_nodes)
        for device in range(cluster._value.node(node)["num_accelerators"])
    ]


def take_devices(cluster: Cluster, devices: Sequence[Device], request: ReserveRequest) -> list[Device]:
    """Waits for other groups of the cluster to be removed where too few accelerators are free."""
    start = said = time.monotonic()
    with changed:
        held = taken.setdefault(cluster, set())
        while len(free := [device for device in devices if device not in held]) < request.num_bundles:
            now = time.monotonic()
            words = f"{len(free)} of {len(devices)} accelerators are free, {request.num_bundles} are asked for; other placement groups of this Cluster hold the rest"
            if now - start >= request.timeout:
                raise fault(
                    Timeout,
                    f"no placement group after {request.timeout:g} seconds: {words}",
                    hint="remove a group with remove_placement_groups(); nothing is reserved",
                )
            if now - said >= SAY_EVERY:
                said = now
                request.say(f"waiting for accelerators: {words}; {start + request.timeout - now:.0f} seconds are left")
            changed.wait(min(SAY_EVERY, start + request.timeout - now))
        chosen = free[: request.num_bundles]
        held.update(chosen)
    return chosen


class LocalReservation:
    """The accelerators of one group."""

    def __init__(self, cluster: Cluster, devices: list[Device]) -> None:
        self._cluster, self._devices = cluster, devices
        self._is_removed = False
        self._trainers: list[LocalTrainers] = []
        self.group = PlacementGroup(f"{os.getpid()}-{next(numbers)}", len(devices))
        self.group.reservation = self

    def check(self) -> None:
        if self._is_removed:
            raise fault(EngineError, f"the placement group {self.group.id} is gone", hint=GONE)

    def find(self, timeout: float, known: Sequence[Bundle] = ()) -> list[Bundle]:
        self.check()
        found = []
        for index, (node, device) in enumerate(self._devices):
            address = self._cluster._value.node(node)["address"]
            found.append(Bundle(index, f"{node:09d}", address, device, None))  # ids sort as the nodes do
        return found

    def has_moved(self, known: Sequence[Bundle]) -> bool:
        self.check()
        return False

    def start(self, request: TrainerRequest) -> "LocalTrainers":
        self.check()
        devices = [self._devices[bundle.index] for bundle in request.bundles]
        trainers = LocalTrainers(self._cluster, devices, request)
        self._trainers = [*(each for each in self._trainers if not each.is_closed), trainers]
        return trainers

    def remove(self) -> None:
        if self._is_removed:
            return
        self._is_removed = True
        with contextlib.ExitStack() as ends:  # all of it happens, also where some trainers cannot be ended
            ends.callback(self._give_back)
            for trainers in self._trainers:
                ends.callback(trainers.close)

    def _give_back(self) -> None:
        with changed:
            taken[self._cluster] -= set(self._devices)
            changed.notify_all()


def reservation_of(group: PlacementGroup) -> LocalReservation:
    if not isinstance(group.reservation, LocalReservation):
        raise fault(EngineError, f"the placement group {group.id} is not of this process", hint=GONE)
    return group.reservation


# --- trainers


class Variable:
    """A variable of the process that unpickles this, as an argument of a constructor there."""

    def __init__(self, name: str, kind: type) -> None:
        self._name, self._kind = name, kind

    def __reduce__(self) -> Any:
        return read_variable, (self._name, self._kind)


def read_variable(name: str, kind: Callable[[str], Any]) -> Any:
    return kind(os.environ[name])


CONSTRUCTOR = (
    Variable("WORLD_SIZE", int),
    Variable("RANK", int),
    Variable("MASTER_ADDR", str),
    Variable("MASTER_PORT", int),
)


class LocalTrainers:
    """The trainers of one TrainGroup: a worker group of the user's own class, whose ranks see all accelerators of their node."""

    def __init__(self, cluster: Cluster, devices: Sequence[Device], request: TrainerRequest) -> None:
        self._request = request
        placements = place(cluster, devices)
        self._seats: Any = [Seat(node, [str(device)]) for node, device in devices]
        self._launch = LaunchRequest(
            cls=request.cls,
            args=CONSTRUCTOR,
            kwargs={},
            name=f"{request.name}.{next(numbers)}",
            placements=placements,
            env=shared_variables(request),
            surroundings=Surroundings.of(cluster, placements),
        )
        self._link = start(cluster, self._launch, self)
        self._waiting: Future[Any] | None = None  # the newest call that waits for references
        self.is_closed = False
        self.handles: list[Any] = [TrainerHandle(self, rank) for rank in range(len(devices))]

    def check(self, timeout: float) -> None:
        group = self._link._group
        try:
            wait_ready(group, replace(self._launch, name=self._request.name, timeout=timeout))
        except Timeout as error:
            error.ranks = [rank for rank in range(group.size) if group.rank(rank)["state"] != "ready"]  # type: ignore[attr-defined]
            raise
        self._link.starting = None
        self._link.tell()

    def send(self, method: str, calls: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]) -> list[Any]:
        return [self.send_one(rank, method, args, kwargs) for rank, (args, kwargs) in enumerate(calls)]

    def send_one(self, rank: int, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> "Reference":
        if not callable(getattr(self._request.cls, method, None)):
            raise AttributeError(f"class {self._request.cls.__name__} has no method {method!r}")
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, Reference)]
        site = CallSite(self._request.name, method, (rank,), self._seats, self._link)
        call = self._link.caller(site)
        if not given and (self._waiting is None or self._waiting.done()):
            return Reference(call(*args, **kwargs))
        # In the order of the calls, as on Ray: one that waits for a value holds up those after it. The thread is a daemon: a value
        # that never comes must not keep the program from ending.
        before, self._waiting = self._waiting, Future()
        threading.Thread(target=send_later, args=(self._waiting, before, call, args, kwargs), daemon=True).start()
        return Reference(self._waiting)

    def gather(self, method: str, references: Sequence[Any], timeout: float) -> list[Any]:
        start = time.monotonic()
        handles = [reference.handle(start + timeout - time.monotonic()) for reference in references]
        site = CallSite(self._request.name, method, None, self._seats, self._link)
        joined = Handle(site, Joined([handle._call for handle in handles]))
        values = wait_named(joined, max(0.0, start + timeout - time.monotonic()))
        self._link.tell()
        return values

    def close(self) -> None:
        self.is_closed = True
        self._link.close()
        GROUPS.leave(self._launch.name)

    _close = close  # what GROUPS calls at the end of the program


def start(cluster: Cluster, launch: LaunchRequest, owner: LocalTrainers) -> LocalGroup:
    engine = GROUPS.uses(cluster._engine_link())
    assert isinstance(engine, LocalEngine)
    GROUPS.reserve(launch.name)
    try:
        link = engine.start(launch)
    except BaseException:
        GROUPS.leave(launch.name)
        raise
    GROUPS.enter(launch.name, owner)  # type: ignore[arg-type]
    return link


def place(cluster: Cluster, devices: Sequence[Device]) -> _roost.Placements:
    """One process on each accelerator, by rank. Each sees all of its node."""
    firsts = list(
        itertools.accumulate(
            (cluster._value.node(rank)["num_accelerators"] for rank in range(cluster.num_nodes)), initial=0
        )
    )
    strategy = FlexiblePlacementStrategy([[firsts[node] + device] for node, device in devices])
    return strategy.get_placement(cluster, isolate_accelerator=False)


def shared_variables(request: TrainerRequest) -> dict[str, str]:
    """What all trainers have; the engine gives each its ranks."""
    variables, warnings = _roost.trainer_variables(
        -1,
        0,
        None,
        0,
        None,
        None,
        request.preload,
        request.is_replaying,
        environment(os.environ),
        environment(request.own),
    )
    warn(warnings, 7)
    return variables


class TrainerHandle:
    """A trainer, with the words of a Ray actor's handle: ``handle.method.remote(x)`` returns a reference."""

    def __init__(self, trainers: LocalTrainers, rank: int) -> None:
        self._trainers, self._rank = trainers, rank

    def __getattr__(self, method: str) -> "TrainerMethod":
        if method.startswith("_"):
            raise AttributeError(f"{method!r} is private to the trainer's class")
        return TrainerMethod(self._trainers, self._rank, method)

    def __repr__(self) -> str:
        return f"<roost trainer {self._rank} of {self._trainers._request.name!r}>"


class TrainerMethod:
    """A method of a trainer."""

    def __init__(self, trainers: LocalTrainers, rank: int, name: str) -> None:
        self._trainers, self._rank, self._name = trainers, rank, name

    def remote(self, *args: Any, **kwargs: Any) -> "Reference":
        return self._trainers.send_one(self._rank, self._name, args, kwargs)


# --- references


class Reference(LocalReference):
    """What a method of a trainer will have answered: ``wait(timeout=None)`` returns the value, ``done()`` tells whether it is there."""

    def __init__(self, call: "Handle | Future[Handle]") -> None:
        self._call = call

    def handle(self, timeout: float | None = None) -> Handle:
        """The call, once it was sent. Raises the error of a reference that it waits for."""
        if isinstance(self._call, Handle):
            return self._call
        try:
            return self._call.result(None if timeout is None else max(0.0, timeout))
        except FutureTimeout:
            raise Timeout(f"the call waits for references that have no value after {timeout:g} s") from None

    def wait(self, timeout: float | None = None) -> Any:
        start = time.monotonic()
        handle = self.handle(timeout)
        return handle.wait(None if timeout is None else max(0.0, start + timeout - time.monotonic()))[0]

    def done(self) -> bool:
        if isinstance(self._call, Handle):
            return self._call.done()
        return self._call.done() and (self._call.exception() is not None or self._call.result().done())


def send_later(
    sent: "Future[Handle]", before: "Future[Handle] | None", call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Sends a call once the one before it was sent and the references in its arguments have values."""
    if before is not None:
        wait_futures([before])
    try:
        sent.set_result(call(*map(resolve, args), **{name: resolve(value) for name, value in kwargs.items()}))
    except BaseException as error:
        sent.set_exception(error)


def resolve(value: Any) -> Any:
    return value.wait() if isinstance(value, Reference) else value


def get(references: Sequence[Any], timeout: float | None) -> list[Any]:
    start = time.monotonic()
    values = []
    for reference in references:
        values.append(reference.wait(None if timeout is None else max(0.0, start + timeout - time.monotonic())))
    return values


class Joined:
    """Calls to single ranks as one Call."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls

    def wait(self, timeout: float | None, /) -> bool:
        start = time.monotonic()
        return all(
            call.wait(None if timeout is None else max(0.0, start + timeout - time.monotonic())) for call in self._calls
        )

    def done(self) -> bool:
        return all(call.done() for call in self._calls)

    def values(self, timeout: float, /) -> tuple[list[Any], list[Answered]] | None:
        return None

    def has_failed(self) -> bool:
        return any(call.has_failed() for call in self._calls)

    async def async_wait(self) -> None:
        for call in self._calls:
            await call.async_wait()

    def outcomes(self) -> list[Outcome]:
        return [outcome for call in self._calls for outcome in call.outcomes()]
