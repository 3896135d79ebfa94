"""The managers: who is where, who talks to whom, who has which device and port.

A manager is asked through its proxy, ``WorkerManager.get_proxy()``. What is asked goes as JSON through
a transport: by default a connection to the keeper of this process's namespace, one for each process.
An engine that has another way to the same memory calls ``set_transport``.
"""

import json
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from roost import _roost
from roost._addresses import CollectiveGroupInfo, WorkerAddress, WorkerInfo, address_text
from roost._arguments import as_rank, as_text, check_seconds, is_int
from roost._config import ClusterConfig, environment
from roost._errors import EngineError, Timeout
from roost._nodes import NodeGroupInfo, NodeInfo

if TYPE_CHECKING:
    from roost._cluster import Cluster

# --- the way to the memory ---


class Transport(Protocol):
    """Carries a call to the managers' memory and its value back."""

    def call(self, method: str, args: list[Any], timeout: float | None) -> Any:
        """``method`` is as in ``NodeManager.get_nodes``; args and value are what JSON can hold. Raises what read_answer raises."""


# What kind of error an answer's code is.
KINDS: dict[str, type[_roost.Error]] = {
    "access": EngineError, "engine": EngineError, "fit": _roost.RankError, "io": EngineError, "rank": _roost.RankError, "timeout": Timeout,
}  # fmt: skip


def make_error(code: str, message: str, hint: str) -> _roost.Error:
    error = KINDS.get(code, _roost.Error)(message + (f" ({hint})" if hint else ""))
    error.code, error.hint = code, hint
    return error


def make_request(method: str, args: list[Any]) -> bytes:
    return json.dumps({"call": method, "args": args}, ensure_ascii=False, allow_nan=False).encode()


def read_answer(answer: bytes) -> Any:
    """The value of an answer; an error in it is raised."""
    fields = json.loads(answer)
    if "error" in fields:
        raise make_error(**fields["error"])
    return fields["value"]


class KeeperTransport:
    """A connection to a namespace's keeper."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        try:
            self._client = _roost.RegistryClient(environment(), as_text("namespace", namespace))
        except _roost.Error as error:
            raise make_error(error.code, str(error), "") from None

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        try:
            answer = self._client.call(make_request(method, args), timeout)
        except _roost.Error as error:
            if error.code == "engine":
                forget(self)
            raise make_error(error.code, str(error), "") from None
        return read_answer(answer)

    def close(self) -> None:
        self._client.close()


class RegistryTransport:
    """A memory in this process: for tests, and for a process that is the only one."""

    def __init__(self, registry: _roost.Registry, owner: int = 0) -> None:
        self._registry, self._owner = registry, owner

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        answer = self._registry.answer(self._owner, make_request(method, args))
        if answer is None:
            raise make_error("timeout", f"{method} would wait for ever: nobody else can answer", "")
        return read_answer(answer)


@dataclass
class Chosen:
    """How this process reaches managers."""

    given: Transport | None = None  # by set_transport
    namespace: str | None = None  # that a Cluster of this process has started or attached to
    clusters: "list[weakref.ref[Cluster]]" = field(default_factory=list)  # of this process, in their order
    current: str | None = None  # the namespace that proxies ask in
    # A connection is an owner: what was registered through it ends with it, so it is kept.
    connections: dict[str, KeeperTransport] = field(default_factory=dict)
    pid: int = 0  # whose connections these are


chosen = Chosen()
choosing = threading.RLock()


def set_transport(transport: Transport | None) -> None:
    """How proxies of this process reach the managers; None = by namespace, as at first."""
    chosen.given = transport


def set_namespace(namespace: str | None, *, is_new: bool = False) -> None:
    """The namespace of this process's Cluster, for when the environment names none."""
    with choosing:
        chosen.namespace, chosen.current = namespace, None
        if is_new and namespace in chosen.connections:  # it was to somebody before
            del chosen.connections[namespace]


def set_cluster(cluster: "Cluster") -> None:
    """The Cluster of this process: its managers are started when they are first asked for."""
    chosen.clusters = [known for known in chosen.clusters if known() is not None] + [weakref.ref(cluster)]


def newest_cluster() -> "Cluster | None":
    """The Cluster of this process that was made last, of those that are there."""
    return next((cluster for known in reversed(chosen.clusters) if (cluster := known()) is not None), None)


def find_namespace() -> str:
    """ROOST_NAMESPACE, else that of this process's Cluster, else the only one that lives."""
    named = os.environ.get("ROOST_NAMESPACE")
    if named:
        return named
    living = _roost.namespaces(environment())
    if chosen.namespace in living:
        return chosen.namespace
    cluster = newest_cluster()
    if cluster is not None:
        return cluster.namespace
    if len(living) == 1:
        return living[0]
    if not living:
        raise make_error("engine", "no run of this user is alive", "start one with Cluster(num_nodes=...), or name it with ROOST_NAMESPACE; one on Ray is found with engine='ray'")
    raise make_error("engine", f"{len(living)} runs of this user are alive: {', '.join(living)}", "name one of them with ROOST_NAMESPACE, or as namespace")


def get_transport() -> Transport:
    """This process's way to the managers, made when it is first asked for. A forked process has one of its own."""
    if chosen.given is not None:
        return chosen.given
    with choosing:
        if chosen.pid != os.getpid():
            chosen.connections, chosen.pid = {}, os.getpid()
        name = chosen.current or find_namespace()
        if name not in chosen.connections:
            chosen.connections[name] = KeeperTransport(name)
        chosen.current = name
        return chosen.connections[name]


def forget(transport: KeeperTransport) -> None:
    """Its managers are gone; others may come under the same name."""
    with choosing:
        if chosen.connections.get(transport.namespace) is transport:
            del chosen.connections[transport.namespace]
            chosen.current = None


# --- the managers ---


class Manager:
    """What the five have in common."""

    _proxies: ClassVar[dict[type, "Manager"]] = {}

    @classmethod
    def get_proxy(cls) -> Self:
        """The one of this process. Raises EngineError where no managers can be reached."""
        get_transport()
        return Manager._proxies.setdefault(cls, cls())  # type: ignore[return-value]

    def _call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        if timeout is not None:
            check_seconds("timeout", timeout)
        return get_transport().call(f"{type(self).__name__}.{method}", list(args), timeout)


class WorkerManager(Manager):
    """Workers by address. The newest registration of an address is the only one; it ends with the process that made it."""

    def register_worker(self, worker_address: WorkerAddress | str, worker_info: WorkerInfo) -> None:
        self._call("register_worker", address_text(worker_address), worker_info.to_json())

    def unregister_worker(self, worker_address: WorkerAddress | str) -> bool:
        """Whether it was there."""
        return bool(self._call("unregister_worker", address_text(worker_address)))

    def get_worker_info(self, worker_address: WorkerAddress | str) -> WorkerInfo | None:
        info = self._call("get_worker_info", address_text(worker_address))
        return None if info is None else WorkerInfo.from_json(info)


class CollectiveManager(Manager):
    """Groups of workers that talk to each other, and the port by which they meet."""

    def register_collective_group(self, collective_group: CollectiveGroupInfo) -> None:
        """An error when the name is known with other members."""
        self._call("register_collective_group", collective_group.to_json())

    def get_collective_group(self, group_name: str) -> CollectiveGroupInfo | None:
        info = self._call("get_collective_group", as_text("group_name", group_name))
        return None if info is None else CollectiveGroupInfo.from_json(info)

    def set_master_port_info(self, group_name: str, port: Any) -> None:
        self._call("set_master_port_info", as_text("group_name", group_name), port)

    def get_master_port_info(self, group_name: str) -> Any:
        """What was set last, or None."""
        return self._call("get_master_port_info", as_text("group_name", group_name))

    def reset_master_port_info(self, group_name: str) -> None:
        self._call("reset_master_port_info", as_text("group_name", group_name))


class NodeManager(Manager):
    """The cluster as its driver sees it."""

    def _cluster(self) -> "Cluster":
        from roost._attach import cluster_of

        return cluster_of(self._call("get_view"))

    def get_nodes(self) -> list[NodeInfo]:
        """In node order."""
        return self._cluster().nodes

    def get_node_groups(self) -> list[NodeGroupInfo]:
        """Configured groups, then ``cluster`` and ``node``."""
        return self._cluster().node_groups

    def get_cluster_config(self) -> ClusterConfig | None:
        """The config's ``cluster`` section, where the driver was given one as a mapping; its numbers and groups otherwise; None without a config."""
        from roost._attach import cluster_config_of

        return cluster_config_of(self._call("get_view"))

    def get_master_ip(self) -> str | None:
        address: str | None = self._call("get_master_ip")
        return address

    def get_master_port(self) -> int | None:
        """A port of node 0 that no other run of this user is given."""
        port: int | None = self._call("get_master_port")
        return port

    def get_num_gpus_per_node(self) -> int:
        """Accelerators of a node; an error where nodes differ."""
        return int(self._call("get_num_gpus_per_node"))


class DeviceLockManager(Manager):
    """One lock for each accelerator, first come first served. Who ends holds nothing."""

    def acquire_devices(self, worker_address: WorkerAddress | str, accel_ids: Sequence[Any], timeout: float | None = None) -> None:
        """Waits until all of them are free, then has them all. An id is a number in the cluster or ``(node_rank, number)``.

        What the worker has already is its own at once, and is given back by one release.
        """
        self._call("acquire_devices", address_text(worker_address), as_ids(accel_ids), timeout=timeout)

    def release_devices(self, worker_address: WorkerAddress | str, accel_ids: Sequence[Any]) -> None:
        """An EngineError, and nothing is released, when one of them is not the worker's."""
        self._call("release_devices", address_text(worker_address), as_ids(accel_ids))


def as_ids(ids: Sequence[Any]) -> list[Any]:
    return [as_rank("accel_ids", one) if is_int(one) else [as_rank("accel_ids", part) for part in one] for one in ids]


class PortLockManager(Manager):
    """Which worker has which port of which node. Who ends holds nothing."""

    def acquire(self, node_rank: int, worker_name: str, port: int) -> bool:
        """Whether it is this worker's now; never waits."""
        return bool(self._call("acquire", as_rank("node_rank", node_rank), as_text("worker_name", worker_name), as_rank("port", port)))

    def release(self, node_rank: int, worker_name: str, port: int) -> None:
        self._call("release", as_rank("node_rank", node_rank), as_text("worker_name", worker_name), as_rank("port", port))
