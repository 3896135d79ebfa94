"""The local engine: groups as processes of this machine, over the C library's groups and calls."""

import json
import os
import sys
import threading
from pathlib import Path

from roost import _roost
from roost._local.allocate import Allocated
from roost._local.group import LocalGroup, read_refusal
from roost._local.reader import READING
from roost._local.registry_server import Managers
from roost._local.screen import Screen
from roost._local.serve import START, SearchPath, Start
from roost._local.warm import library_modules
from roost._plan.cluster import PlanningCluster
from roost._plan.errors import EngineError, Timeout, fault, warn
from roost._plan.nodes import NodeInfo
from roost._plan.view import cluster_of
from roost._work.call import Outcome, failure_of
from roost._work.codec import encode
from roost._work.engine import AllocateRequest, ClusterRequest, LaunchRequest, Surroundings
from roost._work.group import GROUPS, check_name
from roost._work.managers import ServerTransport, find_namespace, set_namespace
from roost._work.program import find_program
from roost._work.script import script_name


def begin(cluster: PlanningCluster, request: ClusterRequest) -> "LocalEngine":
    return LocalEngine(cluster, request)


def attach(cluster: PlanningCluster, request: ClusterRequest) -> "LocalEngine":
    """Makes it the cluster of a living run of this user."""
    namespace = request.namespace or find_namespace()
    transport = ServerTransport(namespace)
    found = cluster_of(transport.call("NodeManager.get_view", []))
    transport.close()
    cluster._become(found._value, found._config, found._section)
    set_namespace(namespace)
    return LocalEngine(cluster, request, attached=namespace)


class LocalEngine:
    """The worker groups that this process launches on a cluster. Each is a run of its own. All share a namespace and its managers."""

    def __init__(self, cluster: PlanningCluster, request: ClusterRequest, attached: str | None = None) -> None:
        """`attached` is the namespace of a run that another process began; None = this process begins one."""
        self._cluster = PlanningCluster._of(cluster._value, cluster._config, cluster._section)
        self._request, self._attached = request, attached
        self._managers: Managers = getattr(cluster, "_managers", None) or Managers(cluster, request.namespace)
        self._lock = threading.Lock()
        self._has_said_simulated = attached is not None

    @property
    def namespace(self) -> str:
        """The namespace of the groups and their managers: that of the run it is attached to, or of its own registry server, which
        this starts where it does not run yet."""
        return self._managers.namespace if self._attached is None else self._attached

    def _say_simulated(self) -> None:
        """Tells the person at the terminal once, before the first process starts, that this machine has less than the
        cluster. Logs and pipes do not get it: programs read those."""
        if sys.stderr is None or not sys.stderr.isatty():
            return
        with self._lock:
            has_said, self._has_said_simulated = self._has_said_simulated, True
        if not has_said and (text := self._cluster._value.simulated):
            print(f"roost: {text}", file=sys.stderr, flush=True)

    def launch(self, request: LaunchRequest) -> "LocalGroup":
        running = self.start(request)
        try:
            wait_ready(running._group, request)
        except BaseException:
            running.close()
            raise
        running.starting = None
        running.tell()
        return running

    def start(self, request: LaunchRequest) -> "LocalGroup":
        """The group as it starts: what it is called with waits until it can answer."""
        self._say_simulated()
        first_port, may_have_cgroup = _roost.settings(os.environ)
        start = Start(
            request.cls,
            request.args,
            request.kwargs,
            request.max_concurrency,
            request.catch_system_failure,
            request.surroundings,
        )
        message = encode((SearchPath(sys.executable, sys.prefix, search_path()), start))
        extra = dict(request.env)
        if request.catch_system_failure:
            extra["CATCH_SYSTEM_FAILURE"] = "1"
        try:
            group = _roost.Group(
                self._cluster._config,
                self._cluster._value,
                request.placements,
                request.name,
                worker_command(request),
                dict(os.environ),
                extra,
                find_program(),
                self.namespace,
                may_have_cgroup,
                logs_dir=self._request.logs_dir,
                port_base=first_port,
                forker=forker_command(request),
                title=f"{script_name()}: {request.name}",
            )
        except _roost.Error as error:
            if error.code != "engine":
                raise
            raise as_engine_error(error) from None
        READING.add(group)
        warn(group.warnings, 4)
        screen = None if request.disable_distributed_log else Screen(group.dir, group.name, range(group.size))
        running = LocalGroup(group, screen, self)
        running.starting = group.call(START, message, None, None)
        return running

    def allocate(self, request: AllocateRequest) -> Allocated:
        launch = LaunchRequest(
            cls=request.cls,
            args=request.args,
            kwargs=request.kwargs,
            name=check_name(request.group_name),
            placements=request.placements,
            max_concurrency=request.max_concurrency,
            disable_distributed_log=request.disable_distributed_log,
            catch_system_failure=os.environ.get("RLINF_CATCH_FAILURE") == "1",
            env=request.env,
            surroundings=Surroundings.of(self._cluster, request.placements),
            interpreters={} if request.interpreter is None else {0: request.interpreter},
        )
        GROUPS.reserve(request.name)
        try:
            handle = Allocated(request.name, self.start(launch), request.placements)
        except BaseException:
            GROUPS.leave(request.name)
            raise
        GROUPS.enter(request.name, handle)  # type: ignore[arg-type]
        return handle

    def complete(self, node: NodeInfo) -> None:
        """The planner knows all of it."""

    def find_group(self, name: str) -> "LocalGroup":
        raise EngineError(
            f"group {name!r} is not of this process, and on the local engine only the process that launched a group can call it"
        )

    def close(self) -> None:
        """Ends the registry server; its groups are closed already. Another launch starts a new one."""
        self._managers.close()


def as_engine_error(error: _roost.Error) -> EngineError:
    return fault(EngineError, error.message, code=error.code, hint=error.hint)


def search_path() -> list[str]:
    return [entry or os.getcwd() for entry in sys.path]


def worker_command(request: LaunchRequest) -> list[str]:
    main = str(Path(__file__).with_name("worker_main.py"))
    command = [sys.executable, "-P", main]
    paths = set(request.interpreters.values())
    if len(paths) == 1 and len(request.interpreters) == len(request.placements):
        return [paths.pop(), "-P", main]
    return command + [f"{rank}={path}" for rank, path in request.interpreters.items()]


def forker_command(request: LaunchRequest) -> list[str] | None:
    """The warm program that forks the workers; None where each has to be started by itself."""
    if not request.warm or request.interpreters:
        return None
    order = {"path": search_path(), "modules": library_modules(request.cls), "main": "roost._local.worker_main"}
    return [sys.executable, "-P", "-m", "roost._local.fork_server", json.dumps(order)]


def wait_ready(group: _roost.Group, request: LaunchRequest) -> None:
    problem = group.wait_ready(request.timeout)
    if problem is None:
        return
    code, message, rank = problem
    if code == "timeout":
        raise Timeout(f"group {request.name!r} was not ready after {request.timeout:g} s: {message}")
    if code != "worker" or rank < 0:
        raise EngineError(f"group {request.name!r} could not be started: {message}")
    known = group.rank(rank)
    outcome = (
        read_refusal(rank, known["bytes"])
        if known["state"] == "refused"
        else Outcome(rank, "unknown", error=message, end=known["end"])
    )
    raise failure_of(request.name, outcome, request.placements, "to start", outcomes=[outcome]) from outcome.exception
