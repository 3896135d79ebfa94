"""Clusters that other objects describe: what they answer is read once, and numbered by the planner."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from roost import _roost
from roost._nodes import Accelerator


@runtime_checkable
class DescribesCluster(Protocol):
    """Any object with these can stand for a cluster."""

    def get_node_group(self, label: str, /) -> Any: ...

    def get_node_info(self, node_rank: int, /) -> Any: ...


def describe(cluster: DescribesCluster, labels: Iterable[str]) -> _roost.Cluster:
    """The node groups of these labels with the nodes they hold.

    A group that the object does not have is left out; whoever names it is told by the planner.
    """
    groups = []
    nodes: dict[int, tuple[int, int, tuple[str, ...]]] = {}
    for label in dict.fromkeys(labels):
        group = cluster.get_node_group(label)
        if group is None:
            continue
        ranks = tuple(group.node_ranks)
        for rank in ranks:
            if rank not in nodes:
                nodes[rank] = describe_node(cluster.get_node_info(rank))
        groups.append((label, group.hardware_type, ranks))
    if not nodes:
        raise _roost.Error(f"the cluster describes no nodes: {cluster!r}")
    # Ranks that nobody named are there, but empty; ranks that cannot be are refused by the planner.
    count = min(max(nodes) + 1, 1 << 20)
    return _roost.Cluster.from_parts(tuple(nodes.get(rank, (0, 0, ())) for rank in range(count)), tuple(groups))


def describe_node(node: Any) -> tuple[int, int, tuple[str, ...]]:
    """Accelerator type by its number, how many, and a hardware type for everything else it has."""
    word = node.accelerator_type
    word = getattr(word, "value", word)
    if word not in _roost.accelerator_types:
        raise TypeError(f"accelerator_type of a node must be one of {', '.join(map(str, _roost.accelerator_types))}, not {word!r}")
    resources = getattr(node, "hardware_resources", None)
    units = [
        resource.type
        for resource in (resources if isinstance(resources, list | tuple) else ())
        if resource.type != Accelerator.HW_TYPE
        for _ in resource.infos
    ]
    return _roost.accelerator_types.index(word), node.num_accelerators, tuple(units)
