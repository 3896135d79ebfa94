"""The managers: where workers are, which collective groups they form, and which devices and ports they hold.

A program asks a manager through its proxy, ``WorkerManager.get_proxy()``. A request goes as JSON through
a transport: by default a connection to the registry server of this process's namespace, one for each process.
An engine that has another way to the same memory calls ``set_transport``.
"""

import json
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

from roost import _roost
from roost._plan.arguments import as_rank, as_text, check_seconds, is_int
from roost._plan.cluster import PlanningCluster
from roost._plan.config import ClusterConfig, environment
from roost._plan.errors import error_fields, make_error
from roost._plan.nodes import NodeGroupInfo, NodeInfo
from roost._plan.view import cluster_config_of, cluster_of
from roost._work.addresses import CollectiveGroupInfo, WorkerAddress, WorkerInfo, address_text

# --- the way to the memory ---


class Transport(Protocol):
    """Carries a request to the managers' memory, and the value back."""

    def call(self, method: str, args: list[Any], timeout: float | None) -> Any:
        """``method`` is as in ``NodeManager.get_nodes``; args and value are what JSON can hold. Raises what read_answer raises."""


def make_request(method: str, args: list[Any]) -> bytes:
    return json.dumps({"call": method, "args": args}, ensure_ascii=False, allow_nan=False).encode()


def read_answer(answer: bytes) -> Any:
    """The value of an answer. Raises the error that the answer has instead."""
    fields = json.loads(answer)
    if "error" in fields:
        raise make_error(**fields["error"])
    return fields["value"]


class ServerTransport:
    """A connection to a namespace's registry server."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        try:
            self._client = _roost.RegistryClient(environment(), as_text("namespace", namespace))
        except _roost.Error as error:
            raise make_error(**error_fields(error)) from None

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        try:
            answer = self._client.call(make_request(method, args), timeout)
        except _roost.Error as error:
            if error.code == "engine":
                forget(self)
            raise make_error(**error_fields(error)) from None
        return read_answer(answer)

    def close(self) -> None:
        self._client.close()


class RegistryTransport:
    """A memory in this process: for tests, and for a run of one process."""

    def __init__(self, registry: _roost.Registry, owner: int = 0) -> None:
        self._registry, self._owner = registry, owner

    def call(self, method: str, args: list[Any], timeout: float | None = None) -> Any:
        answer = self._registry.answer(self._owner, make_request(method, args))
        if answer is None:
            raise make_error("timeout", f"{method} would wait for ever: nobody else can answer")
        return read_answer(answer)


class HasNamespace(Protocol):
    """A Cluster, as far as the managers need it."""

    @property
    def namespace(self) -> str:
        """The namespace of its managers, which this starts where they do not run yet."""


@dataclass
class Chosen:
    """The way in which this process reaches the managers."""

    given: Transport | None = None  # by set_transport
    namespace: str | None = None  # that a Cluster of this process has started or attached to
    clusters: "list[weakref.ref[HasNamespace]]" = field(default_factory=list)  # Clusters of this process, oldest first
    current: str | None = None  # the namespace that proxies ask in
    # A connection is an owner: what was registered through it ends with it, so it is kept.
    connections: dict[str, ServerTransport] = field(default_factory=dict)
    pid: int = 0  # whose connections these are


chosen = Chosen()
choosing = threading.RLock()


def set_transport(transport: Transport | None) -> None:
    """Sets how the proxies of this process reach the managers; None = by namespace, the default."""
    chosen.given = transport


def set_namespace(namespace: str | None, *, is_new: bool = False) -> None:
    """Sets the namespace of this process's Cluster, which counts where the environment names none."""
    with choosing:
        chosen.namespace, chosen.current = namespace, None
        if is_new and namespace in chosen.connections:  # it belongs to managers that are gone
            del chosen.connections[namespace]


def set_cluster(cluster: HasNamespace) -> None:
    """Notes a new Cluster of this process. Its managers start when a proxy first asks for them."""
    chosen.clusters = [known for known in chosen.clusters if known() is not None] + [weakref.ref(cluster)]


def newest_cluster() -> HasNamespace | None:
    """The newest Cluster of this process that still exists."""
    return next((cluster for known in reversed(chosen.clusters) if (cluster := known()) is not None), None)


def find_namespace() -> str:
    """ROOST_NAMESPACE, else the namespace of this process's Cluster, else the only living one of this user."""
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
        raise make_error(
            "engine",
            "no run of this user is alive",
            "start one with Cluster(num_nodes=...), or name it with ROOST_NAMESPACE; one on Ray is found with engine='ray'",
        )
    raise make_error(
        "engine",
        f"{len(living)} runs of this user are alive: {', '.join(living)}",
        "name one of them with ROOST_NAMESPACE, or as namespace",
    )


def get_transport() -> Transport:
    """The transport of this process, opened when it is first needed. A forked process opens its own."""
    if chosen.given is not None:
        return chosen.given
    with choosing:
        if chosen.pid != os.getpid():
            chosen.connections, chosen.pid = {}, os.getpid()
        name = chosen.current or find_namespace()
        if name not in chosen.connections:
            chosen.connections[name] = ServerTransport(name)
        chosen.current = name
        return chosen.connections[name]


def forget(transport: ServerTransport) -> None:
    """Drops a connection whose managers are gone: others may come under the same name."""
    with choosing:
        if chosen.connections.get(transport.namespace) is transport:
            del chosen.connections[transport.namespace]
            chosen.current = None


# --- the managers ---


class Manager:
    """What the five managers have in common."""

    _proxies: ClassVar[dict[type, "Manager"]] = {}

    @classmethod
    def get_proxy(cls) -> Self:
        """The proxy of this process. Raises EngineError where it cannot reach any managers."""
        get_transport()
        return Manager._proxies.setdefault(cls, cls())  # type: ignore[return-value]

    def _call(self, method: str, *args: Any, timeout: float | None = None) -> Any:
        if timeout is not None:
            check_seconds("timeout", timeout)
        return get_transport().call(f"{type(self).__name__}.{method}", list(args), timeout)


class WorkerManager(Manager):
    """Workers by their addresses. A new registration of an address replaces the old one, and ends with its process.
    Processes of `roost run` are known without one."""

    def register_worker(self, worker_address: WorkerAddress | str, worker_info: WorkerInfo) -> None:
        """Registers a worker under an address."""
        self._call("register_worker", address_text(worker_address), worker_info.to_json())

    def unregister_worker(self, worker_address: WorkerAddress | str) -> bool:
        """Removes a registration. Returns whether there was one."""
        return bool(self._call("unregister_worker", address_text(worker_address)))

    def get_worker_info(self, worker_address: WorkerAddress | str) -> WorkerInfo | None:
        """The record of the worker with this address, or None. The worker's own record counts before that of its run."""
        info = self._call("get_worker_info", address_text(worker_address))
        return None if info is None else WorkerInfo.from_json(info)

    def get_workers(self, group_name: str) -> list[WorkerInfo]:
        """The records of all workers of a group or component, in the order of their ranks."""
        return [WorkerInfo.from_json(info) for info in self._call("get_workers", as_text("group_name", group_name))]

    def get_group_names(self) -> list[str]:
        """The groups and components that have workers."""
        return [str(name) for name in self._call("get_group_names")]


class CollectiveManager(Manager):
    """Collective groups: workers that communicate with each other, and the port where they meet."""

    def register_collective_group(self, collective_group: CollectiveGroupInfo) -> None:
        """Registers a collective group. Raises EngineError where the name is taken by a group with other members."""
        self._call("register_collective_group", collective_group.to_json())

    def get_collective_group(self, group_name: str) -> CollectiveGroupInfo | None:
        """The collective group with this name, or None."""
        info = self._call("get_collective_group", as_text("group_name", group_name))
        return None if info is None else CollectiveGroupInfo.from_json(info)

    def set_master_port_info(self, group_name: str, port: Any) -> None:
        """Stores the port where the members of a collective group meet."""
        self._call("set_master_port_info", as_text("group_name", group_name), port)

    def get_master_port_info(self, group_name: str) -> Any:
        """The port that was stored last, or None."""
        return self._call("get_master_port_info", as_text("group_name", group_name))

    def reset_master_port_info(self, group_name: str) -> None:
        """Removes the stored port."""
        self._call("reset_master_port_info", as_text("group_name", group_name))


class NodeManager(Manager):
    """The cluster of the run, as its driver sees it."""

    def _cluster(self) -> PlanningCluster:
        return cluster_of(self._call("get_view"))

    def get_nodes(self) -> list[NodeInfo]:
        """All nodes, in node order."""
        return self._cluster().nodes

    def get_node_groups(self) -> list[NodeGroupInfo]:
        """The configured node groups, then ``cluster`` and ``node``."""
        return self._cluster().node_groups

    def get_cluster_config(self) -> ClusterConfig | None:
        """The ``cluster`` section of the driver's config; None without a config. Of a config file it has the number of nodes
        and the node groups only."""
        return cluster_config_of(self._call("get_view"))

    def get_master_ip(self) -> str | None:
        """The address of node 0, or None where it has none."""
        address: str | None = self._call("get_master_ip")
        return address

    def get_master_port(self) -> int | None:
        """A port of node 0 that is leased for this run, or None."""
        port: int | None = self._call("get_master_port")
        return port

    def get_num_gpus_per_node(self) -> int:
        """The number of accelerators on each node. Raises roost.Error where nodes differ."""
        return int(self._call("get_num_gpus_per_node"))


class DeviceLockManager(Manager):
    """One lock for each accelerator, first come first served. Locks of a process that ends are released."""

    def acquire_devices(
        self, worker_address: WorkerAddress | str, accel_ids: Sequence[Any], timeout: float | None = None
    ) -> None:
        """Waits until all these accelerators are free, then locks all of them for the worker.

        An id is a number in the cluster, or ``(node_rank, number)``. An accelerator that the worker holds already counts
        as free, and one release frees it. ``timeout`` is in seconds; None waits for ever. Raises Timeout when time is up.
        """
        self._call("acquire_devices", address_text(worker_address), as_ids(accel_ids), timeout=timeout)

    def release_devices(self, worker_address: WorkerAddress | str, accel_ids: Sequence[Any]) -> None:
        """Releases these accelerators. Raises EngineError, and releases none, where the worker does not hold one of them."""
        self._call("release_devices", address_text(worker_address), as_ids(accel_ids))


def as_ids(ids: Sequence[Any]) -> list[Any]:
    return [as_rank("accel_ids", one) if is_int(one) else [as_rank("accel_ids", part) for part in one] for one in ids]


class PortLockManager(Manager):
    """Locks of ports of nodes. Locks of a process that ends are released."""

    def acquire(self, node_rank: int, worker_name: str, port: int) -> bool:
        """Locks a port of a node for a worker. Returns whether the worker has it now. Never waits."""
        return bool(
            self._call(
                "acquire", as_rank("node_rank", node_rank), as_text("worker_name", worker_name), as_rank("port", port)
            )
        )

    def release(self, node_rank: int, worker_name: str, port: int) -> None:
        """Releases a port. Raises EngineError where the worker does not hold it."""
        self._call(
            "release", as_rank("node_rank", node_rank), as_text("worker_name", worker_name), as_rank("port", port)
        )
