"""WorkerGroup: workers of one class, called together."""

import atexit
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from roost import _roost
from roost._plan.arguments import as_bool, as_count, as_int, as_text, check_seconds
from roost._plan.errors import EngineError, fault
from roost._plan.strategy import NodePlacementStrategy, PackedPlacementStrategy, PlacementStrategy
from roost._work.call import CallSite, Handle
from roost._work.cluster import Cluster
from roost._work.engine import EngineLink, GroupLink, LaunchRequest, Surroundings
from roost._work.logs import log_level
from roost._work.script import ending, uncaught

OWN_METHODS = ("launch", "execute_on", "from_group_name")
NOT_CALLED = ("create_group", "timer")  # of Worker: for the driver's side


class PrivateName(_roost.Error, AttributeError):
    """A method that only the worker itself may call."""


class Groups:
    """The worker groups of this process, by their names. None stands for a group that is about to start."""

    def __init__(self) -> None:
        self._running: dict[str, WorkerGroup | None] = {}
        self._engines: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._owner = 0

    def reserve(self, name: str) -> None:
        """Takes the name for a group that is about to start. Raises EngineError where another group has it."""
        with self._lock:
            if self._owner != os.getpid():  # a fork has no groups: they are its parent's
                self._running, self._engines, self._owner = {}, weakref.WeakSet(), os.getpid()
                atexit.register(self.close)
            if name in self._running:
                raise fault(
                    EngineError,
                    f"group {name!r} is running already",
                    hint="give this one another name, or close that one first",
                )
            self._running[name] = None

    def uses(self, engine: EngineLink) -> EngineLink:
        """An engine that is to be closed when the groups are."""
        with self._lock:
            self._engines.add(engine)
        return engine

    def enter(self, name: str, group: "WorkerGroup") -> None:
        with self._lock:
            self._running[name] = group

    def leave(self, name: str) -> None:
        with self._lock:
            self._running.pop(name, None)

    def find(self, name: str) -> "WorkerGroup | None":
        with self._lock:
            return self._running.get(name) if self._owner == os.getpid() else None

    def close_links(self, links: Sequence[GroupLink]) -> None:
        """Ends the groups of an engine that has ended, so that their names are free."""
        for link in list(links):
            for group in [group for group in list(self._running.values()) if group is not None and group._link is link]:
                group._close()
            link.close()

    def close(self) -> None:
        """Ends all groups. The exit status of the process stays what it is."""
        if self._owner == os.getpid():
            with ending(uncaught()):
                for group in [group for group in list(self._running.values()) if group is not None]:
                    group._close()
            for engine in list(self._engines):
                engine.close()


GROUPS = Groups()


# What stands in a class for a method, and cannot be called itself.
GIVE_METHODS = (staticmethod, classmethod, functools.partialmethod, functools.singledispatchmethod)


def public_methods(cls: type) -> list[str]:
    """Names of the methods that a group of the class has."""
    names = [name for name in dir(cls) if not name.startswith("_") and name not in NOT_CALLED]
    return [
        name
        for name in names
        if callable(found := inspect.getattr_static(cls, name)) or isinstance(found, GIVE_METHODS)
    ]


class WorkerGroup:
    """Workers of one class that are called together.

    ``MyWorker.create_group(...)`` makes a group and ``launch`` starts it. Every public method of the class is then a
    method of the group: it sends the same arguments to every rank and returns a handle without waiting.
    ``handle.wait()`` returns the results in rank order. ``execute_on(2, 0)`` chooses ranks for one call.

    ``close()`` ends the group; ``with`` does so at the end of its block. Where the class has a method ``close`` of its
    own, ``group.close()`` calls that method on the workers, and ``WorkerGroup.shutdown(group)`` ends the group.
    """

    def __init__(self, cls: type, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> None:
        if not inspect.isclass(cls):
            raise TypeError(f"cls must be a class of workers, not {cls!r}")
        self._cls, self._args, self._kwargs = cls, tuple(args), dict(kwargs or {})
        self._link: GroupLink | None = None
        self._name = ""
        self._methods: frozenset[str] = frozenset()
        self._world_size = 0
        self._placements: _roost.Placements | None = None
        self._is_closed = False
        self._is_launching = threading.Lock()

    def launch(
        self,
        cluster: Cluster,
        placement_strategy: PlacementStrategy | None = None,
        name: str | None = None,
        max_concurrency: int | None = None,
        isolate_gpu: bool = True,
        catch_system_failure: bool | None = None,
        disable_distributed_log: bool = False,
        *,
        isolate_accelerator: bool | None = None,
        warm: bool = True,
        timeout: float | None = None,
    ) -> "WorkerGroup":
        """Starts one worker for each process that the strategy places, waits until all are ready, and returns the group.

        ``cluster``: the Cluster to run on. ``placement_strategy``: where the workers go; without one there is a worker
        for each accelerator, or a single worker on node 0 of a cluster without accelerators. ``name``: the name of the
        group, ``worker_group_<class>`` by default. ``max_concurrency``: how many calls a worker answers at a time.
        ``isolate_accelerator`` (or ``isolate_gpu``): whether a worker sees only its own accelerators.
        ``catch_system_failure``: whether a signal prints the stacks of a worker before it ends.
        ``disable_distributed_log``: True keeps the output of the workers off the driver's screen. ``warm``: False
        starts each worker in a new interpreter instead of a fork of a warm one. ``timeout``: seconds until all workers
        must be ready; the cluster's by default.

        Raises WorkerError when a constructor raises, Timeout when time is up, and EngineError when the engine cannot
        start the group. Nothing of the group is left running then.
        """
        if not isinstance(cluster, Cluster):
            raise TypeError(f"cluster must be a roost.Cluster, not {type(cluster).__name__}")
        self._check_methods()
        name = default_name(self._cls) if name is None else check_name(name)
        log_level(os.environ)
        placements = place(cluster, placement_strategy, read_isolation(isolate_gpu, isolate_accelerator))
        request = LaunchRequest(
            cls=self._cls,
            args=self._args,
            kwargs=self._kwargs,
            name=name,
            placements=placements,
            max_concurrency=None if max_concurrency is None else as_count("max_concurrency", max_concurrency, 1),
            catch_system_failure=catches_failures(catch_system_failure),
            disable_distributed_log=as_bool("disable_distributed_log", disable_distributed_log),
            warm=as_bool("warm", warm),
            timeout=cluster._timeout if timeout is None else read_seconds(timeout),
            surroundings=Surroundings.of(cluster, placements),
            interpreters=find_interpreters(cluster, placements),
        )
        self._start(cluster, request)
        return self

    def _start(self, cluster: Cluster, request: LaunchRequest) -> None:
        if self._link is not None or not self._is_launching.acquire(blocking=False):
            raise fault(
                EngineError,
                f"this group was launched already, as {self._name!r}",
                hint="create_group makes another one",
            )
        try:
            GROUPS.reserve(request.name)
            try:
                link = GROUPS.uses(cluster._engine_link()).launch(request)
            except BaseException:
                GROUPS.leave(request.name)
                raise
            self._attach(request.name, link, request.placements)
            GROUPS.enter(request.name, self)
        finally:
            self._is_launching.release()

    def _check_methods(self) -> None:
        clash = [name for name in OWN_METHODS if hasattr(self._cls, name)]
        if clash:
            raise _roost.Error(
                f"{self._cls.__name__} has a method {clash[0]!r}, which is a method of the group itself: give it another name"
            )

    def _attach(self, name: str, link: GroupLink, placements: _roost.Placements | None) -> None:
        self._name, self._link, self._placements, self._world_size = name, link, placements, link.world_size
        self._methods = frozenset(public_methods(self._cls))
        for method in self._methods:
            setattr(self, method, self._caller(method, None))

    def _caller(self, method: str, ranks: tuple[int, ...] | None) -> Callable[..., Handle]:
        assert self._link is not None
        doc = getattr(self._cls, method, None).__doc__
        return self._link.caller(CallSite(self._name, method, ranks, self._placements, self._link, doc))

    def execute_on(self, *ranks: int) -> "Chosen":
        """Chooses the ranks of one call: ``group.execute_on(2, 0).method(x)``. Results come in this order.

        Raises roost.RankError for a rank that the group does not have, and for a rank that is named twice.
        """
        if self._link is None:
            raise EngineError(f"a group of {self._cls.__name__} must be launched before it is called")
        numbers = tuple(as_int("rank", rank) for rank in ranks)
        for rank in numbers:
            if not 0 <= rank < self._world_size:
                raise _roost.RankError(
                    f"rank {rank} is not in group {self._name!r}, which has 0-{self._world_size - 1}"
                )
        if not numbers or len(set(numbers)) < len(numbers):
            raise _roost.RankError(f"execute_on takes ranks, each once, not {numbers!r}")
        return Chosen(self, numbers)

    @classmethod
    def from_group_name(cls, worker_cls: type, group_name: str) -> "WorkerGroup":
        """The running group with this name: one of this process, or, on Ray, one of the run that this process belongs to.

        ``worker_cls`` is the class of its workers, whose public methods become those of the group. Raises EngineError
        where there is no such group, or the engine cannot reach it from this process.
        """
        name = check_name(group_name)
        known = GROUPS.find(name)
        if known is not None:
            if not isinstance(known, WorkerGroup):
                raise EngineError(
                    f"{name!r} is a process that Cluster.allocate() started, and no group: keep its handle"
                )
            if known._cls is worker_cls:
                return known
            link, placements = known._link, known._placements
        else:
            link, placements = Cluster()._engine_link().find_group(name), None
        assert link is not None
        group = cls(worker_cls)
        group._attach(name, link, placements)
        return group

    def _close(self) -> None:
        """Ends the workers."""
        if self._link is None or self._is_closed:
            return
        self._is_closed = True
        try:
            self._link.close()
        finally:
            known = GROUPS.find(self._name)
            if known is not None and known._link is self._link:
                known._is_closed = True
                GROUPS.leave(self._name)

    def close(self) -> None:
        """Ends the workers and frees the name. The outcome of calls that are under way is not known afterwards.

        Where the class of the workers has a method ``close``, this name calls that one: use WorkerGroup.shutdown(group).
        """
        self._close()

    @staticmethod
    def shutdown(group: "WorkerGroup") -> None:
        """Ends a group, whatever methods the class of its workers has: ``WorkerGroup.shutdown(group)``.

        Does what ``close()`` does. A second call does nothing, and neither does one for a group that was not launched.
        Raises TypeError for anything that is not a WorkerGroup.
        """
        if not isinstance(group, WorkerGroup):
            raise TypeError(f"group must be a WorkerGroup, not {type(group).__name__}")
        group._close()

    def __enter__(self) -> "WorkerGroup":
        return self

    def __exit__(self, kind: object, raised: BaseException | None, traceback: object) -> None:
        with ending(raised):
            self._close()

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        if "_cls" not in fields:  # made by no constructor
            raise AttributeError(name)
        refuse_name(fields["_cls"], name, fields.get("_link") is not None)

    def __reduce__(self) -> Any:
        raise TypeError(
            "cannot pickle a WorkerGroup: find it with WorkerGroup.from_group_name(cls, name) where it is needed"
        )

    def __repr__(self) -> str:
        if self._link is None:
            return f"<roost.WorkerGroup of {self._cls.__name__}: not launched>"
        return f"<roost.WorkerGroup {self._name!r}: {self._world_size} x {self._cls.__name__}{', closed' if self._is_closed else ''}>"


class Chosen:
    """Some ranks of a group, for a call."""

    def __init__(self, group: WorkerGroup, ranks: tuple[int, ...]) -> None:
        self._group, self._ranks = group, ranks

    def __getattr__(self, name: str) -> Callable[..., Handle]:
        if name.startswith("_") or name not in self._group._methods:
            refuse_name(self._group._cls, name, True)
        return self._group._caller(name, self._ranks)


def refuse_name(cls: type, name: str, is_launched: bool) -> None:
    if name.startswith("__"):
        raise AttributeError(name)
    if name.startswith("_"):
        raise PrivateName(f"{name!r} is private to {cls.__name__}: only public methods can be called")
    if not is_launched and name in public_methods(cls):
        raise AttributeError(f"{name!r} can be called when the group has been launched")
    raise AttributeError(f"{cls.__name__} has no public method {name!r}")


def check_name(name: str) -> str:
    _roost.check_group_name(as_text("name", name))
    return name


def default_name(cls: type) -> str:
    name = f"worker_group_{cls.__name__}"
    try:
        return check_name(name)
    except _roost.Error as error:
        hint = "pass one to launch: name='trainer', of letters, digits, '_', '-' and '.', at most 63"
        raise fault(
            _roost.Error, f"a group of {cls.__name__} needs a name: {name!r} cannot be one", hint=hint, code=error.code
        ) from None


def read_isolation(isolate_gpu: bool, isolate_accelerator: bool | None) -> bool:
    if isolate_accelerator is None:
        return as_bool("isolate_gpu", isolate_gpu)
    if not as_bool("isolate_gpu", isolate_gpu) and as_bool("isolate_accelerator", isolate_accelerator):
        raise TypeError("isolate_gpu is the older name of isolate_accelerator: pass one of them")
    return as_bool("isolate_accelerator", isolate_accelerator)


def read_seconds(timeout: float) -> float:
    check_seconds("timeout", timeout)
    return float(timeout)


def catches_failures(asked: bool | None) -> bool:
    return os.environ.get("RLINF_CATCH_FAILURE") == "1" if asked is None else as_bool("catch_system_failure", asked)


def place(cluster: Cluster, strategy: Any, isolate: bool) -> _roost.Placements:
    if strategy is None:
        count = cluster.num_accelerators
        strategy = PackedPlacementStrategy(0, count - 1) if count else NodePlacementStrategy([0])
    if isinstance(strategy, type) or not hasattr(strategy, "get_placement"):
        what = f"the class {strategy.__name__} itself" if isinstance(strategy, type) else type(strategy).__name__
        raise TypeError(f"placement_strategy must be a PlacementStrategy, not {what}")
    placements = strategy.get_placement(cluster, isolate)
    if not isinstance(placements, _roost.Placements):
        raise TypeError(
            f"placement_strategy must answer with roost.Placements, not {type(placements).__name__}: derive it from a strategy of roost"
        )
    return placements


def find_interpreters(cluster: Cluster, placements: _roost.Placements) -> dict[int, str]:
    """The interpreters that node groups name, by rank."""
    if cluster._config is None or not any(env[2] for group in cluster._config.groups for env in group[4]):
        return {}
    paths = {
        (label, rank): path
        for label, _, _, _, envs in cluster._config.groups
        for ranks, _, path in envs
        if path
        for rank in ranks
    }
    found = {p.rank: paths.get((p.node_group_label, p.cluster_node_rank)) for p in placements}
    return {rank: path for rank, path in found.items() if path}
