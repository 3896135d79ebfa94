"""Clusters that other objects describe: what they answer is read once, and numbered by the planner."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from roost import _roost
from roost._plan.arguments import as_count, as_rank, as_text, is_int
from roost._plan.errors import fault

NodePart = tuple[int, int, tuple[str, ...], int]


class DescribesCluster(Protocol):
    """Any object with these can stand for a cluster."""

    def get_node_group(self, label: str, /) -> Any: ...

    def get_node_info(self, node_rank: int, /) -> Any: ...


def describes_cluster(value: Any) -> bool:
    """Asked of the object itself, which may hand questions on to another."""
    return all(callable(getattr(value, name, None)) for name in ("get_node_group", "get_node_info"))


def ask(described: Any, name: str, what: str) -> Any:
    """An attribute that what was described must have."""
    try:
        return getattr(described, name)
    except AttributeError as error:
        raise TypeError(f"{what} must have {name}; {type(described).__name__} has none") from error


def each(values: Any, name: str) -> Iterator[Any]:
    if isinstance(values, str):
        raise TypeError(f"{name} must be a sequence, not {values!r}")
    try:
        return iter(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence, not {values!r}") from None


def describe(cluster: DescribesCluster, labels: Iterable[str]) -> _roost.Cluster:
    """The node groups of these labels with the nodes they hold.

    A node group that the object does not have is left out; the planner reports it where a strategy names it.
    """
    groups, missing = [], []
    nodes: dict[int, NodePart] = {}
    for label in dict.fromkeys(labels):
        group = cluster.get_node_group(label)
        if group is None:
            missing.append(label)
            continue
        ranks, hardware_type = describe_group(group, f"node group '{label}'")
        for rank in ranks:
            if rank not in nodes:
                nodes[rank] = describe_node(cluster.get_node_info(rank), f"node {rank}")
        groups.append((label, hardware_type, ranks, False))
    if not nodes and missing:
        raise fault(
            _roost.Error,
            f"there is no node group '{missing[0]}': the cluster has None for it",
            code="reference",
            hint="name a group that get_node_group() of the cluster knows",
        )
    if not nodes:
        raise fault(_roost.Error, f"the cluster describes no nodes: {cluster!r}", hint="give its node groups some")
    # Ranks that no group names are empty nodes. The planner refuses ranks that are too large.
    count = min(max(nodes) + 1, 1 << 20)
    return _roost.Cluster.from_description(
        tuple(nodes.get(rank, (0, 0, (), 0)) for rank in range(count)), tuple(groups)
    )


def describe_group(group: Any, what: str) -> tuple[tuple[int, ...], str | None]:
    """Its node ranks, and what its ranks count."""
    written = each(ask(group, "node_ranks", what), f"node_ranks of {what}")
    ranks = tuple(as_rank(f"node_ranks[{index}] of {what}", rank) for index, rank in enumerate(written))
    hardware_type = ask(group, "hardware_type", what)
    return ranks, None if hardware_type is None else as_text(f"hardware_type of {what}", hardware_type)


def describe_node(node: Any, what: str) -> NodePart:
    """Accelerator type by its number, how many, a hardware type for everything else it has, and CPUs where it knows them."""
    word = ask(node, "accelerator_type", what)
    word = getattr(word, "value", word)
    if word not in _roost.accelerator_types:
        raise TypeError(
            f"accelerator_type of {what} must be one of {', '.join(map(str, _roost.accelerator_types))}, not {word!r}"
        )
    count = as_count(f"num_accelerators of {what}", ask(node, "num_accelerators", what))
    cpus = getattr(node, "num_cpus", None)
    cpus = as_count(f"num_cpus of {what}", cpus) if is_int(cpus) else 0
    return _roost.accelerator_types.index(word), count, describe_units(node, what), cpus


def describe_units(node: Any, what: str) -> tuple[str, ...]:
    """The hardware type of every unit that is not an accelerator."""
    resources = getattr(node, "hardware_resources", None)
    units: list[str] = []
    for resource in each(() if resources is None else resources, f"hardware_resources of {what}"):
        kind = as_text(
            f"type of the hardware_resources of {what}", ask(resource, "type", f"a hardware resource of {what}")
        )
        if kind != _roost.accelerator_hardware:
            units += [kind for _ in each(ask(resource, "infos", f"a hardware resource of {what}"), f"infos of {what}")]
    return tuple(units)
