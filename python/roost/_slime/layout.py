"""The layout of slime's placement groups: how many GPUs, whose they are, in what order. Planned, not reserved.

Everything is decided by the C planner.
"""

import json
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

from roost import _roost
from roost._plan.arguments import as_count, as_int, as_path, is_bool
from roost._plan.cluster import planning_value
from roost._plan.config import is_mapping, lines, resolving
from roost._plan.described import DescribesCluster
from roost._plan.errors import warn

# The attributes that are looked at; the C reader knows what they mean.
ARGUMENTS = (
    "profile",
    "actor_num_nodes",
    "actor_num_gpus_per_node",
    "rollout_num_gpus",
    "rollout_num_gpus_per_engine",
    "num_gpus_per_node",
    "colocate",
    "debug_train_only",
    "debug_rollout_only",
    "rollout_external",
    "rollout_external_engine_addrs",
    "use_critic",
    "advantage_estimator",
    "load_debug_rollout_data",
    "hf_checkpoint",
    "offload_train",
    "offload_rollout",
    "release_train",
    "train_async",
    "prefill_num_servers",
    "sglang",
    "sglang_config",
    "sglang_dp_size",
    "num_gpus_per_actor",
    "num_gpus_per_part",
    "num_http_posters",
    "port_base",
    "dist_init_ports",
    "colocate_size",
    "share_gpu_ids",
)


@dataclass(frozen=True)
class Share:
    """A role's piece of the order: slots ``first`` to ``first + count - 1``.

    ``world_size`` counts its workers: trainers, or parts of engines. Each takes ``gpu_each`` of a
    GPU and as much of a CPU.
    """

    first: int
    count: int
    world_size: int
    gpu_each: float


@dataclass(frozen=True)
class EnginePart:
    """The piece of an engine on one node.

    ``slot`` is its first GPU in the whole order, ``node_rank`` its place within the engine, ``node``
    the node it runs on and ``local_gpu`` its first GPU there. ``ports`` says how many it wants of
    each kind, ``port_offsets`` where they stand among all that its node is asked for.
    """

    rank: int
    slot: int
    node_rank: int
    node0: bool
    node: int
    local_gpu: int
    ports: dict[str, int]
    port_offsets: dict[str, int]


@dataclass(frozen=True)
class Engine:
    """An engine; an external one has an address, and neither slots nor parts."""

    engine: int
    model: str
    worker_type: str
    gpus: int | None
    first_slot: int | None
    offset: int | None
    server_group: int
    address: str | None
    parts: list[EnginePart]


@dataclass(frozen=True)
class ServerGroup:
    """Servers of one kind."""

    model: str
    worker_type: str
    num_gpus: int | None
    num_gpus_per_engine: int | None
    first_slot: int | None
    first_rank: int
    first_engine: int
    num_engines: int
    update_weights: bool
    needs_offload: bool


@dataclass(frozen=True)
class EngineLayout:
    """Everything that is known before anything is reserved."""

    num_gpus: int
    rollout_offset: int
    layout: str
    num_gpus_per_node: int
    num_cpus: float
    port_base: int
    offload_train: bool
    offload_rollout: bool
    share_gpu_ids: bool
    shares: dict[str, Share | None]
    server_groups: list[ServerGroup]
    engines: list[Engine]
    ports_of_node: list[int]


@dataclass(frozen=True)
class BundleOrder:
    """Bundles in order.

    ``indices[s]`` is the bundle of slot ``s``, ``nodes[s]`` the number of its node and ``gpus[s]`` that
    of its GPU there (-1: its id is no number); ``resolved`` has the names that were asked for, with the
    answers.
    """

    indices: list[int]
    nodes: list[int]
    resolved: dict[str, str | None]
    gpus: list[int]

    @property
    def slots_of_node(self) -> list[int]:
        """How many slots each node has, for ``get_engine_layout``."""
        counts = [0] * (self.nodes[-1] + 1 if self.nodes else 0)
        for node in self.nodes:
            counts[node] += 1
        return counts


def get_placement_group_layout(args: Any) -> tuple[int, int]:
    """``(num_gpus, rollout_offset)``: the size of the reservation, and where rollout starts."""
    document = lay_out(args, None, None, True)
    return document["num_gpus"], document["rollout_offset"]


def get_engine_layout(
    args: Any,
    cluster: "str | os.PathLike[str] | DescribesCluster | None" = None,
    *,
    slots_of_node: Sequence[int] | None = None,
    order: BundleOrder | None = None,
) -> EngineLayout:
    """Shares, engines, parts and the ports they want; a ``roost.Error`` for what cannot run.

    Nodes are those of ``cluster`` (a spec such as ``"2x8"``, a snapshot, ``"local"``, or a
    ``roost.Cluster``); or have as many slots as ``slots_of_node`` says; or are those of ``order``, what
    a probe of every bundle found, and then GPUs have the numbers that they have there; or else have
    ``num_gpus_per_node`` GPUs each.
    """
    given = [
        name
        for name, value in (("cluster", cluster), ("slots_of_node", slots_of_node), ("order", order))
        if value is not None
    ]
    if len(given) > 1:
        raise TypeError(f"{given[0]} and {given[1]} both say what nodes there are: pass one of them")
    if order is not None and not isinstance(order, BundleOrder):
        raise TypeError(f"order must be what order_bundles() answers, not {order!r}")
    slots = None if slots_of_node is None else as_counts("slots_of_node", slots_of_node)
    document = lay_out(
        args, cluster, tuple(order.slots_of_node) if order else slots, False, tuple(order.gpus) if order else None
    )
    shares = {name: share and Share(**share) for name, share in document["shares"].items()}
    engines = [
        Engine(**{**engine, "parts": [EnginePart(**part) for part in engine["parts"]]})
        for engine in document["engines"]
    ]
    groups = [ServerGroup(**group) for group in document["server_groups"]]
    ports = [node["num_ports"] for node in document["nodes"]]
    plain = {name: document[name] for name in EngineLayout.__dataclass_fields__ if name in document}
    return EngineLayout(
        **{**plain, "shares": shares, "server_groups": groups, "engines": engines, "ports_of_node": ports}
    )


def planned_share(args: Any, role: str) -> Share:
    """What the plan gives the trainers of a role. The roles whose trainers share GPUs have the same."""
    document = lay_out(args, None, None, True)
    return Share(**(document["shares"][role] or document["shares"]["actor"]))


def layout_table(args: Any, cluster: Any = None) -> str:
    """The layout as `roost groups` shows it."""
    return lay_out_text(args, cluster, None, False, None, True)[0]


def order_bundles(
    bundles: Iterable[tuple[int, Any, int | str]],
    *,
    visible: Mapping[Hashable, str | Sequence[str]] | None = None,
    resolve: bool | Callable[[str], str | None] = False,
) -> BundleOrder:
    """What :func:`sort_bundles` sorts, with the nodes and the answers of the resolver."""
    if not is_bool(resolve) and not callable(resolve):
        raise TypeError(f"resolve must be a bool or a function from a name to an address, not {resolve!r}")
    lists = visible_lists(visible)
    rows = [(*row, visible_to(row, lists)) for row in as_rows(bundles)]
    return BundleOrder(*_roost.order_bundles(rows, resolve if callable(resolve) else bool(resolve)))


def sort_bundles(
    bundles: Iterable[tuple[int, Any, int | str]],
    *,
    visible: Mapping[Hashable, str | Sequence[str]] | None = None,
    resolve: bool | Callable[[str], str | None] = False,
) -> list[int]:
    """The indices of ``(index, node, gpu_id)`` in the stable order.

    ``node`` is an address, or a pair ``(node_id, address)``: then the id says who the node is, and
    its bundles stay together whatever its address. IPv4 comes by value, then IPv6, then names in
    natural order; GPU ids are numbers, or opaque texts that come in the order of the node's
    ``visible`` devices (by node, as it is written in ``bundles``), else by their bytes. No name is
    looked up unless ``resolve`` is true (the system's resolver) or a function from a name to an
    address; each is then asked for once.

    >>> sort_bundles([(0, "fd00::10", 0), (1, "fd00::9", 0), (2, "node10", 0), (3, "node9", 0), (4, "10.0.0.1", 0)])
    [4, 1, 0, 3, 2]
    >>> sort_bundles([(0, ("b", "10.0.0.1"), 0), (1, ("a", "10.0.0.1"), 1), (2, ("b", "10.0.0.1"), 1), (3, ("a", "10.0.0.1"), 0)])
    [3, 1, 0, 2]
    """
    return order_bundles(bundles, visible=visible, resolve=resolve).indices


def as_counts(name: str, values: Any) -> tuple[int, ...]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of ints, not {values!r}")
    return tuple(as_count(f"{name}[{index}]", value) for index, value in enumerate(values))


def as_rows(bundles: Any) -> Iterator[Any]:
    """Bundles as tuples; each may come as any sequence of three."""
    if isinstance(bundles, str | bytes) or not isinstance(bundles, Iterable):
        raise TypeError(f"bundles must be a sequence of (index, node, gpu_id), not {bundles!r}")
    for place, bundle in enumerate(bundles):
        row = (
            bundle
            if isinstance(bundle, tuple) or not isinstance(bundle, Iterable) or isinstance(bundle, str | bytes)
            else tuple(bundle)
        )
        if not isinstance(row, tuple) or len(row) != 3:
            raise TypeError(f"bundles[{place}] must be (index, node, gpu_id), not {bundle!r}")
        if type(row[0]) is not int:
            row = (as_int(f"the index of bundles[{place}]", row[0]), *row[1:])
        yield row


def visible_lists(visible: Any) -> dict[Hashable, str]:
    """The devices of nodes, each as one text."""
    if visible is None:
        return {}
    if not is_mapping(visible):
        raise TypeError(f"visible must be a mapping from nodes to their devices, not {visible!r}")
    lists = {}
    for node in visible.keys():
        devices = visible[node]
        is_list = isinstance(devices, Sequence) and all(isinstance(device, str) for device in devices)
        if not is_list or isinstance(devices, bytes):
            raise TypeError(f"visible[{node!r}] must be a str or a sequence of str, not {devices!r}")
        lists[node] = devices if isinstance(devices, str) else ",".join(devices)
    return lists


def visible_to(row: tuple[Any, Any, Any], lists: dict[Hashable, str]) -> str | None:
    """The devices that the bundle's node sees. The planner refuses a node that cannot be a key, and names its bundle."""
    try:
        return lists.get(row[1]) if lists else None
    except TypeError:
        return None


def argument(args: Any, name: str) -> Any:
    if is_mapping(args):
        return args[name] if name in args else None
    return getattr(args, name, None)


def argument_lines(args: Any) -> Iterator[tuple[str, str]]:
    """The arguments as a config text, a line a value, each with the argument's name."""
    yield "{roost: {groups: {", ""
    for name in ARGUMENTS:
        value = argument(args, name)
        if value is None or (name == "profile" and is_bool(value)):  # Megatron has a flag of that name
            continue
        for line, path in lines(value, name, f"{name}: "):
            yield line.replace("${", "\\U0000005C${"), path  # a backslash, which keeps it from being followed
        yield ",", name
    yield "}}}", ""


def lay_out(
    args: Any, cluster: Any, slots: tuple[int, ...] | None, sizes_only: bool, gpus: tuple[int, ...] | None = None
) -> dict[str, Any]:
    text, warnings = lay_out_text(args, cluster, slots, sizes_only, gpus, False)
    warn(warnings, 3)
    answer: dict[str, Any] = json.loads(text)
    return answer


def lay_out_text(
    args: Any,
    cluster: Any,
    slots: tuple[int, ...] | None,
    sizes_only: bool,
    gpus: tuple[int, ...] | None,
    is_table: bool,
) -> tuple[str, Any]:
    """The layout as JSON or as a table, and its warnings."""
    if args is None or isinstance(args, str | bytes | Number | Sequence):
        raise TypeError(f"args must be an object with slime's arguments as attributes, or a mapping, not {args!r}")
    with resolving():
        written = list(argument_lines(args))
    text = "\n".join(line for line, _ in written)
    config = _roost.Config(b"args", text, tuple(path for _, path in written), groups=True)
    value: _roost.Cluster | None = None
    if isinstance(cluster, str | os.PathLike):
        value = _roost.Cluster(as_path("cluster", cluster, "a spec, a path or 'local'"))
        warn(value.warnings, 4)
    elif cluster is not None:
        value = planning_value(cluster)
    document, warnings = _roost.groups_json(config, value, slots, gpus, sizes_only, is_table)
    return document, [*config.warnings, *warnings]
