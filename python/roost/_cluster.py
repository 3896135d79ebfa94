"""The cluster that placements are computed on."""

import json
import os
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from roost import _roost
from roost._config import node_group_configs, read_config
from roost._described import DescribesCluster, describe
from roost._errors import EngineError
from roost._nodes import Accelerator, HardwareInfo, HardwareResource, NodeGroupInfo, NodeInfo
from roost._words import warn


class Cluster:
    """Nodes, accelerators and node groups to plan against.

    Where the nodes come from, first that applies: ``cluster`` (a spec such as ``"2x8"``, a snapshot
    file, or ``"local"``), ``num_nodes`` with ``num_gpus_per_node``, the environment's
    ``ROOST_CLUSTER``, ``roost.cluster`` of the config, this machine.

    ``cluster_cfg`` is the path of a config, a whole config with a ``cluster`` key, or that section
    (a dict or a DictConfig). ``num_nodes=0`` takes all nodes there are. Planning starts nothing, so
    ``distributed_log_dir``, ``namespace`` and ``timeout`` are taken and not used.

    >>> cluster = Cluster(cluster="2x8 A800")
    >>> cluster.num_nodes, cluster.num_accelerators
    (2, 16)
    >>> cluster.get_node_info(1).accelerator_model
    'A800'
    >>> Cluster(num_nodes=2, num_gpus_per_node=8).get_node_group("node").hardware_resource_count
    2
    """

    def __init__(
        self,
        num_nodes: int | None = None,
        cluster_cfg: Any = None,
        distributed_log_dir: str | None = None,
        *,
        num_gpus_per_node: int | None = None,
        engine: str | None = None,
        cluster: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        timeout: float = 600,
    ) -> None:
        if num_nodes is None and cluster_cfg is None and num_gpus_per_node is None and cluster is None:
            raise EngineError("Cluster() attaches to a run, which this version cannot: pass num_nodes, cluster_cfg or cluster")
        if engine not in (None, "local"):
            raise EngineError(f"engine {engine!r} is not there: this version plans only, on 'local'")
        if cluster is not None and not isinstance(cluster, str | os.PathLike):
            raise TypeError(f"cluster must be a spec, a path or 'local', not {cluster!r}")
        config = None if cluster_cfg is None else read_config(cluster_cfg)
        if config is not None and num_nodes == 0:
            raise _roost.Error("num_nodes=0 takes all nodes and is for clusters without a config")
        if num_gpus_per_node is not None:
            if cluster is not None:
                raise TypeError("num_gpus_per_node and cluster say the same: pass one of them")
            count = num_nodes if num_nodes is not None else config.num_nodes if config else None
            cluster = even_spec(count, num_gpus_per_node)
        text = os.fspath(cluster) if cluster else os.environ.get("ROOST_CLUSTER")
        if not text and not (config and config.cluster):
            text = "local"
        self._value = _roost.Cluster(text or None, config, 0 if num_nodes is None else num_nodes)
        self._config = config
        warn(self._value.warnings, 2)

    @property
    def num_nodes(self) -> int:
        return self._value.num_nodes

    @property
    def num_accelerators(self) -> int:
        """Accelerators of all nodes."""
        return self._value.num_accelerators

    @property
    def num_gpus_per_node(self) -> int:
        """Accelerators of a node; an error where nodes differ."""
        counts = {node.num_accelerators for node in self.nodes}
        if len(counts) != 1:
            raise _roost.Error(f"nodes differ in their accelerators: {sorted(counts)}")
        return counts.pop()

    @cached_property
    def nodes(self) -> list[NodeInfo]:
        """In node order."""
        labels: dict[int, list[str]] = {}
        for label, _, node_ranks in self._value.groups:
            for rank in node_ranks:
                labels.setdefault(rank, []).append(label)
        return [make_node(node, labels.get(node["node_rank"], [])) for node in self._value.nodes]

    @cached_property
    def node_groups(self) -> list[NodeGroupInfo]:
        """Configured groups in the order written, then ``cluster`` and ``node``."""
        env_configs = {group.label: group.env_configs for group in node_group_configs(self._config)} if self._config else {}
        groups = []
        for label, hardware_type, node_ranks in self._value.groups:
            group = NodeGroupInfo(label, [self.nodes[rank] for rank in node_ranks], hardware_type, env_configs.get(label))
            group.hardware_type = hardware_type  # the planner's word, also where it is None
            groups.append(group)
        return groups

    def get_node_info(self, node_rank: int) -> NodeInfo:
        if not 0 <= node_rank < self.num_nodes:
            raise _roost.RankError(f"node rank {node_rank} is out of range: there are {self.num_nodes} nodes")
        return self.nodes[node_rank]

    def get_node_group(self, label: str = "cluster") -> NodeGroupInfo | None:
        """The group with that label, or None."""
        return next((group for group in self.node_groups if group.label == label), None)

    def __repr__(self) -> str:
        return f"<roost.Cluster: {self.num_nodes} nodes, {self.num_accelerators} accelerators>"


def even_spec(num_nodes: int | None, num_gpus_per_node: int) -> str:
    """A spec of equal nodes."""
    for name, value in (("num_nodes", num_nodes), ("num_gpus_per_node", num_gpus_per_node)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {value!r}")
        if value < 0:
            raise ValueError(f"{name} must not be negative, not {value}")
    return f"{num_nodes}x{num_gpus_per_node}"


def make_node(node: dict[str, Any], labels: list[str]) -> NodeInfo:
    model = f"{node['accelerator_type']}:{(node['accelerator_model'] or 'UNKNOWN').replace(':', ' ')}"
    infos = [HardwareInfo(Accelerator.HW_TYPE, model) for _ in range(node["num_accelerators"])]
    resources = [HardwareResource(Accelerator.HW_TYPE, infos)] if infos else []
    for kind in dict.fromkeys(kind for kind, _ in node["hardware"]):
        units = [HardwareInfo(kind, kind, json.loads(text)) for other, text in node["hardware"] if other == kind]
        resources.append(HardwareResource(kind, units))
    return NodeInfo(
        node_labels=labels,
        node_rank=node["node_rank"],
        ray_id=node["id"] or "",
        node_ip=node["address"] or "",
        num_cpus=max(node["num_cpus"], 0),
        hardware_resources=resources,
    )


def planning_value(cluster: Any, labels: Iterable[str] = ("cluster",)) -> _roost.Cluster:
    """What the planner sees of a Cluster, or of these node groups of an object that describes one."""
    if isinstance(cluster, Cluster):
        return cluster._value
    if not isinstance(cluster, DescribesCluster):
        raise TypeError(f"cluster must be a Cluster or have get_node_group and get_node_info, not {type(cluster).__name__}")
    return describe(cluster, labels)
