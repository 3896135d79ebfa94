"""Nodes, hardware and node groups as plain records: a Cluster returns them, and a program can describe a cluster with them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roost import _roost
from roost._plan.arguments import as_int, as_rank, as_text
from roost._plan.described import describe_units
from roost._plan.enums import AcceleratorType


def as_list(name: str, value: Any, *attributes: str) -> None:
    """Checks that it is a list, or the like, of things that have these attributes."""
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        raise TypeError(f"{name} must be a list, not {value!r}")
    for place, item in enumerate(value if attributes else ()):
        for attribute in attributes:
            if not hasattr(item, attribute):
                raise TypeError(f"{name}[{place}] must have '{attribute}', but is {item!r}")


class Accelerator:
    """The hardware type of GPUs, NPUs and the like."""

    HW_TYPE = _roost.accelerator_hardware


@dataclass(frozen=True)
class HardwareInfo:
    """One unit of hardware. The model of an accelerator is ``<type>:<model>``, such as ``NV_GPU:A800``. Equal units may be
    one object."""

    type: str
    model: str = ""
    config: Any = None


@dataclass
class HardwareResource:
    """All units of one type on a node."""

    type: str
    infos: list[HardwareInfo] = field(default_factory=list)

    def __post_init__(self) -> None:
        as_text("type", self.type)
        as_list("infos", self.infos)

    @property
    def count(self) -> int:
        """The number of units."""
        return len(self.infos)


@dataclass
class NodeInfo:
    """A node and its hardware.

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

    def __post_init__(self) -> None:
        as_rank("node_rank", self.node_rank)
        as_list("hardware_resources", self.hardware_resources, "type", "infos")

    def get_hardware_count(self, hardware_type: str) -> int:
        """The number of units of this type on the node."""
        return sum(resource.count for resource in self.hardware_resources if resource.type == hardware_type)

    @property
    def num_accelerators(self) -> int:
        """The number of accelerators on the node."""
        return self.get_hardware_count(Accelerator.HW_TYPE)

    def _model_words(self) -> tuple[AcceleratorType, str]:
        for resource in self.hardware_resources:
            if resource.type == Accelerator.HW_TYPE and resource.infos:
                kind, model = _roost.accelerator_model(resource.infos[0].model)
                return AcceleratorType(_roost.accelerator_types[kind]), model
        return AcceleratorType.NO_ACCEL, ""

    @property
    def accelerator_type(self) -> AcceleratorType:
        """The type of the node's accelerators; NO_ACCEL where it has none."""
        return self._model_words()[0]

    @property
    def accelerator_model(self) -> str:
        """The model of the node's accelerators, such as ``A800``; empty where it is not known."""
        return self._model_words()[1]


class Secret(str):
    """The value of a secret variable. It is the text itself, but its repr does not show it."""

    def __repr__(self) -> str:
        return "'***'"


@dataclass
class NodeGroupEnvConfig:
    """Variables and the Python interpreter of processes on some nodes of a node group."""

    node_ranks: list[int]
    env_vars: list[Mapping[str, Any]] | Mapping[str, Any] | None = None
    python_interpreter_path: str | None = None

    def section(self) -> dict[str, Any]:
        """The entry as a config has it."""
        written: dict[str, Any] = {"node_ranks": list(self.node_ranks)}
        if self.env_vars:
            written["env_vars"] = [{name: value} for name, value in self.get_env_vars().items()]
        if self.python_interpreter_path:
            written["python_interpreter_path"] = self.python_interpreter_path
        return written

    def get_env_vars(self) -> dict[str, str]:
        """The variables as one mapping of texts."""
        entries = [self.env_vars] if isinstance(self.env_vars, Mapping) else self.env_vars or []
        return {str(name): str(value) for entry in entries for name, value in entry.items()}


@dataclass
class NodeGroupInfo:
    """A labelled set of nodes, in node order, and what its ranks count.

    ``hardware_type`` is the declared type. Without one it is ``Accelerator`` where a node has accelerators and
    ``ignore_hardware`` is not set, and otherwise None: ranks then count nodes. A program may assign it.
    """

    label: str
    nodes: list[NodeInfo] = field(default_factory=list)
    hardware_type: str | None = None
    env_configs: list[NodeGroupEnvConfig] | None = None
    ignore_hardware: bool = False

    def __post_init__(self) -> None:
        as_text("label", self.label)
        as_list("nodes", self.nodes, "node_rank", "num_accelerators")
        if self.hardware_type is not None:
            as_text("hardware_type", self.hardware_type)
        self.nodes = sorted(self.nodes, key=lambda node: node.node_rank)
        if self.hardware_type is None and not self.ignore_hardware:
            self.hardware_type = self._numbered(finds_type=True).groups[0][1]

    @classmethod
    def _of(
        cls, label: str, nodes: list[NodeInfo], hardware_type: str | None, env_configs: list[NodeGroupEnvConfig] | None
    ) -> "NodeGroupInfo":
        """A group that the planner has numbered already, its type being None where ranks count nodes."""
        group = cls(label, env_configs=env_configs, ignore_hardware=True)
        group.nodes, group.hardware_type, group.ignore_hardware = nodes, hardware_type, hardware_type is None
        return group

    @property
    def node_ranks(self) -> list[int]:
        """The ranks of the nodes in the cluster."""
        return [node.node_rank for node in self.nodes]

    def _numbered(self, finds_type: bool = False) -> _roost.Cluster:
        """As the planner numbers it: a cluster of the group's nodes, by their places in the group."""
        parts = tuple(
            (0, node.num_accelerators, describe_units(node, f"node {node.node_rank}"), 0) for node in self.nodes
        )
        group = (self.label, self.hardware_type, tuple(range(len(parts))), finds_type)
        return _roost.Cluster.from_description(parts or ((0, 0, (), 0),), (group,))

    @property
    def hardware_resource_count(self) -> int:
        """The number of ranks: they go from 0 to one less."""
        return self._numbered().groups[0][3]

    def get_node_by_hardware_rank(self, hardware_rank: int) -> NodeInfo:
        """The node of the unit with this rank. Raises roost.RankError where there is none."""
        return self.nodes[self._numbered().locate(0, as_int("hardware_rank", hardware_rank))[0]]

    def get_local_hardware_rank(self, hardware_rank: int) -> int:
        """The number of the unit with this rank on its own node. Raises roost.RankError where there is none."""
        return self._numbered().locate(0, as_int("hardware_rank", hardware_rank))[1]

    def _env_config(self, node_rank: int) -> NodeGroupEnvConfig | None:
        return next((env for env in self.env_configs or [] if node_rank in env.node_ranks), None)

    def get_node_env_vars(self, node_rank: int) -> dict[str, str]:
        """The variables that env_configs give to processes which are placed on this node through the group."""
        env = self._env_config(node_rank)
        return env.get_env_vars() if env else {}

    def get_node_python_interpreter_path(self, node_rank: int) -> str | None:
        """The Python interpreter that env_configs give to processes on this node, or None."""
        env = self._env_config(node_rank)
        return env.python_interpreter_path if env else None
