"""Nodes, hardware and node groups as plain records: what a Cluster answers with, and what a program
can describe a cluster of its own with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roost import _roost
from roost._words import AcceleratorType


class Accelerator:
    """The hardware type of GPUs, NPUs and the like."""

    HW_TYPE = "Accelerator"


@dataclass
class HardwareInfo:
    """One unit of hardware. An accelerator's model is ``<type>:<model>``, as in ``NV_GPU:A800``."""

    type: str
    model: str = ""
    config: Any = None


@dataclass
class HardwareResource:
    """All units of one type on a node."""

    type: str
    infos: list[HardwareInfo] = field(default_factory=list)

    @property
    def count(self) -> int:
        return len(self.infos)


@dataclass
class NodeInfo:
    """A machine and what it has.

    >>> gpus = [HardwareInfo(Accelerator.HW_TYPE, "NV_GPU:A800")] * 8
    >>> node = NodeInfo(node_rank=0, hardware_resources=[HardwareResource(Accelerator.HW_TYPE, gpus)])
    >>> node.num_accelerators, node.accelerator_type.value, node.accelerator_model
    (8, 'NV_GPU', 'A800')
    """

    node_labels: list[str] = field(default_factory=list)
    node_rank: int = 0
    ray_id: str = ""
    node_ip: str = ""
    num_cpus: int = 0
    python_interpreter_path: str = ""
    default_env_vars: dict[str, str] = field(default_factory=dict)
    env_vars: dict[str, str] = field(default_factory=dict)
    hardware_resources: list[HardwareResource] = field(default_factory=list)
    profiler_backends: list[str] = field(default_factory=list)

    def get_hardware_count(self, hardware_type: str) -> int:
        """Units of that type on this node."""
        return sum(resource.count for resource in self.hardware_resources if resource.type == hardware_type)

    @property
    def num_accelerators(self) -> int:
        return self.get_hardware_count(Accelerator.HW_TYPE)

    def _model_words(self) -> tuple[AcceleratorType, str]:
        for resource in self.hardware_resources:
            if resource.type == Accelerator.HW_TYPE and resource.infos:
                first, colon, rest = resource.infos[0].model.partition(":")
                if ":" in rest:
                    raise _roost.Error(f"the model of an accelerator is TYPE:MODEL, not {resource.infos[0].model!r}")
                # A bare word is a model of NVIDIA, as in a cluster's spec.
                is_type = first in AcceleratorType.__members__
                return (AcceleratorType(first), rest) if is_type else (AcceleratorType.NV_GPU, rest if colon else first)
        return AcceleratorType.NO_ACCEL, ""

    @property
    def accelerator_type(self) -> AcceleratorType:
        return self._model_words()[0]

    @property
    def accelerator_model(self) -> str:
        return self._model_words()[1]


@dataclass
class NodeGroupEnvConfig:
    """Variables and interpreter for some nodes of a group."""

    node_ranks: list[int]
    env_vars: list[Mapping[str, Any]] | Mapping[str, Any] | None = None
    python_interpreter_path: str | None = None

    def get_env_vars(self) -> dict[str, str]:
        entries = [self.env_vars] if isinstance(self.env_vars, Mapping) else self.env_vars or []
        return {str(name): str(value) for entry in entries for name, value in entry.items()}


@dataclass
class NodeGroupInfo:
    """A labelled set of nodes, in node order, and what its ranks count.

    ``hardware_type`` is what was declared, else ``Accelerator`` where a node has one and
    ``ignore_hardware`` is not set, else None: then ranks count nodes. It can be assigned.
    """

    label: str
    nodes: list[NodeInfo] = field(default_factory=list)
    hardware_type: str | None = None
    env_configs: list[NodeGroupEnvConfig] | None = None
    ignore_hardware: bool = False

    def __post_init__(self) -> None:
        self.nodes = sorted(self.nodes, key=lambda node: node.node_rank)
        if self.hardware_type is None and not self.ignore_hardware and any(node.num_accelerators for node in self.nodes):
            self.hardware_type = Accelerator.HW_TYPE

    @property
    def node_ranks(self) -> list[int]:
        return [node.node_rank for node in self.nodes]

    def _count(self, node: NodeInfo) -> int:
        return 1 if self.hardware_type is None else node.get_hardware_count(self.hardware_type)

    def _find(self, hardware_rank: int) -> tuple[NodeInfo, int]:
        local = hardware_rank
        for node in self.nodes:
            if 0 <= local < self._count(node):
                return node, local
            local -= self._count(node)
        raise _roost.RankError(f"rank {hardware_rank} is out of range: node group '{self.label}' has {self.hardware_resource_count}")

    @property
    def hardware_resource_count(self) -> int:
        """How many ranks there are: 0 to one less than this."""
        return sum(self._count(node) for node in self.nodes)

    def get_node_by_hardware_rank(self, hardware_rank: int) -> NodeInfo:
        return self._find(hardware_rank)[0]

    def get_local_hardware_rank(self, hardware_rank: int) -> int:
        """The number of that unit on its own node."""
        return self._find(hardware_rank)[1]

    def _env_config(self, node_rank: int) -> NodeGroupEnvConfig | None:
        return next((env for env in self.env_configs or [] if node_rank in env.node_ranks), None)

    def get_node_env_vars(self, node_rank: int) -> dict[str, str]:
        """Variables that env_configs give to processes placed on that node through this group."""
        env = self._env_config(node_rank)
        return env.get_env_vars() if env else {}

    def get_node_python_interpreter_path(self, node_rank: int) -> str | None:
        env = self._env_config(node_rank)
        return env.python_interpreter_path if env else None
