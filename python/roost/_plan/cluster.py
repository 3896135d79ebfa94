"""Nodes and node groups to plan against, as the C planner numbers them."""

import json
from collections.abc import Iterable
from typing import Any, Self

from roost import _roost
from roost._plan.arguments import as_count, as_text
from roost._plan.config import node_group_configs
from roost._plan.described import describe, describes_cluster
from roost._plan.nodes import Accelerator, HardwareInfo, HardwareResource, NodeGroupInfo, NodeInfo


class PlanningCluster:
    """The part of a Cluster that planning needs. It starts nothing and knows no engine."""

    _value: _roost.Cluster
    _config: _roost.Config | None
    _section: Any  # the config's `cluster` section, where it came as a mapping

    @classmethod
    def _of(cls, value: _roost.Cluster, config: _roost.Config | None, section: Any) -> Self:
        """A cluster that was built already."""
        self = cls.__new__(cls)
        self._become(value, config, section)
        return self

    def _become(self, value: _roost.Cluster, config: _roost.Config | None, section: Any) -> None:
        self._value, self._config, self._section = value, config, section

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self._value.num_nodes

    @property
    def num_accelerators(self) -> int:
        """The number of accelerators on all nodes together."""
        return self._value.num_accelerators

    @property
    def num_gpus_per_node(self) -> int:
        """The number of accelerators on each node. Raises roost.Error where nodes differ."""
        counts = self._value.accelerator_counts
        if len(counts) != 1:
            raise _roost.Error(f"nodes differ in their accelerators: {sorted(counts)}")
        return counts.pop()

    @property
    def nodes(self) -> list[NodeInfo]:
        """All nodes in node order. The records are copies: the caller may change them."""
        return [self.get_node_info(rank) for rank in range(self.num_nodes)]

    @property
    def node_groups(self) -> list[NodeGroupInfo]:
        """The configured node groups in the order of the config, then ``cluster`` and ``node``, as copies."""
        return [self._make_group(group) for group in self._value.groups]

    def _make_group(self, group: tuple[str, str | None, list[int], int]) -> NodeGroupInfo:
        label, hardware_type, node_ranks, _ = group
        configs = node_group_configs(self._config) if self._config else []
        env_configs = next((config.env_configs for config in configs if config.label == label), None)
        return NodeGroupInfo._of(label, [self.get_node_info(rank) for rank in node_ranks], hardware_type, env_configs)

    def get_node_info(self, node_rank: int) -> NodeInfo:
        """The node with this rank in the node order. Raises roost.RankError where there is none."""
        return make_node(self._value.node(node_rank))

    def get_node_group(self, label: str | None = None) -> NodeGroupInfo | None:
        """The node group with this label; None where there is none. Without a label: ``cluster``, all nodes."""
        wanted = "cluster" if label is None else as_text("label", label)
        return next((self._make_group(group) for group in self._value.groups if group[0] == wanted), None)

    def __repr__(self) -> str:
        nodes = "node" if self.num_nodes == 1 else "nodes"
        accelerators = "accelerator" if self.num_accelerators == 1 else "accelerators"
        return f"<roost.Cluster: {self.num_nodes} {nodes}, {self.num_accelerators} {accelerators}>"


def even_spec(count_name: str, num_nodes: Any, num_gpus_per_node: Any) -> bytes:
    """A spec of equal nodes."""
    return b"%dx%d" % (as_count(count_name, num_nodes, 1), as_count("num_gpus_per_node", num_gpus_per_node))


def make_node(node: dict[str, Any]) -> NodeInfo:
    model = f"{node['accelerator_type']}:{(node['accelerator_model'] or 'UNKNOWN').replace(':', ' ')}"
    infos = [HardwareInfo(Accelerator.HW_TYPE, model)] * node["num_accelerators"]
    resources = [HardwareResource(Accelerator.HW_TYPE, infos)] if infos else []
    for kind in dict.fromkeys(kind for kind, _ in node["hardware"]):
        units = [HardwareInfo(kind, kind, json.loads(text)) for other, text in node["hardware"] if other == kind]
        resources.append(HardwareResource(kind, units))
    return NodeInfo(
        node_labels=node["labels"],
        node_rank=node["node_rank"],
        ray_id=node["id"] or "",
        node_ip=node["address"] or "",
        num_cpus=max(node["num_cpus"], 0),
        hardware_resources=resources,
    )


def planning_value(cluster: Any, labels: Iterable[str] = ("cluster",)) -> _roost.Cluster:
    """What the planner sees of a Cluster, or of these node groups of an object that describes one."""
    if isinstance(cluster, PlanningCluster):
        return cluster._value
    if not describes_cluster(cluster):
        raise TypeError(
            f"cluster must be a Cluster or have get_node_group and get_node_info, not {type(cluster).__name__}"
        )
    return describe(cluster, labels)
