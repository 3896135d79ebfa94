"""What exists: nodes in their order, node groups, and the resources that ranks count.

Written from roost's documents and RLinf's behaviour, not from the C.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any

from reference_ranks import Refused, parse_ranks

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
ACCELERATOR = "Accelerator"
GROUP_KEYS = {"label", "node_ranks", "env_configs", "hardware", "hardware_type", "ignore_hardware"}
ENV_KEYS = {"node_ranks", "env_vars", "python_interpreter_path"}
# Fields besides node_rank.
ROBOT_FIELDS = {
    "Franka": "robot_ip camera_serials camera_type gripper_type gripper_connection"
    " controller_node_rank disable_validate",
    "DualFranka": "left_robot_ip right_robot_ip left_camera_serials right_camera_serials"
    " base_camera_serials camera_type base_camera_type left_camera_type right_camera_type"
    " left_gripper_type right_gripper_type left_gripper_connection right_gripper_connection"
    " left_controller_node_rank right_controller_node_rank",
    "DOSW1": "robot_url left_arm_port right_arm_port left_lead_port right_lead_port camera_serials",
    "GimArm": "can_interface arm_variant camera_serials camera_type enable_gripper gripper_type"
    " controller_node_rank disable_validate",
    "Turtle2": "",
}


@dataclass(frozen=True)
class Node:
    rank: int
    accelerator_type: str
    accelerators: int


@dataclass(frozen=True)
class Group:
    label: str
    node_ranks: list[int]
    hardware: str | None = None  # the type the config names, if it names one
    ignore_hardware: bool = False


@dataclass(frozen=True)
class Resource:
    """What one resource rank stands for: a unit of hardware, or a whole node (kind None)."""

    kind: str | None
    node: Node
    local: int
    label: str


@dataclass
class Cluster:
    nodes: list[Node]
    groups: dict[str, Group]
    robots: dict[tuple[int, str], int] = field(default_factory=dict)

    def count(self, kind: str, node_rank: int) -> int:
        if kind == ACCELERATOR:
            return self.nodes[node_rank].accelerators
        return self.robots.get((node_rank, kind), 0)

    def kind(self, group: Group) -> str | None:
        """The group's hardware type."""
        if group.hardware is not None:
            return group.hardware
        if group.ignore_hardware:
            return None
        has_any = any(self.nodes[rank].accelerators for rank in group.node_ranks)
        return ACCELERATOR if has_any else None

    def resources(self, labels: list[str]) -> list[Resource]:
        """Resource rank -> resource, over the groups in the order written."""
        groups = [self.groups[label] for label in labels]
        if any(self.kind(group) is None for group in groups):
            return self._whole_nodes(groups)
        found = []
        for group in groups:
            kind = self.kind(group)
            assert kind is not None
            units = [
                Resource(kind, self.nodes[rank], local, group.label)
                for rank in group.node_ranks
                for local in range(self.count(kind, rank))
            ]
            if not units:
                raise Refused("hardware")
            found += units
        return found

    def _whole_nodes(self, groups: list[Group]) -> list[Resource]:
        # One typeless group is enough: ranks then mean nodes in all of them.
        nodes = [Resource(None, self.nodes[rank], 0, group.label) for group in groups for rank in group.node_ranks]
        if len({resource.node.rank for resource in nodes}) < len(nodes):
            raise Refused("rank")
        return nodes


def natural_key(name: str) -> list[tuple[int, int, str]]:
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts]


def address_key(node: dict[str, Any]) -> tuple[int, Any, str]:
    """IPv4 by value, then IPv6 by value, then names in natural order; ties by id."""
    try:
        address = ipaddress.ip_address(node["address"])
    except ValueError:
        return 6, natural_key(node["address"]), node["id"]
    return address.version - 4, int(address), node["id"]


def order_nodes(nodes: list[dict[str, Any]]) -> list[Node]:
    has_rank = all("node_rank" in node for node in nodes)
    key = (lambda node: node["node_rank"]) if has_rank else address_key
    return [
        Node(rank, node["accelerator_type"], node["num_accelerators"])
        for rank, node in enumerate(sorted(nodes, key=key))
    ]


def check_keys(mapping: Any, required: set[str], known: set[str]) -> None:
    if not isinstance(mapping, dict) or not required <= set(mapping) or not set(mapping) <= known:
        raise Refused("schema")


def read_group(section: Any, num_nodes: int) -> Group:
    check_keys(section, {"label", "node_ranks"}, GROUP_KEYS)
    label = str(section["label"])
    if not NAME.fullmatch(label) or label in ("cluster", "node"):
        raise Refused("name")
    node_ranks = parse_ranks(section["node_ranks"], list(range(num_nodes)))
    ignore = section.get("ignore_hardware", False)
    hardware = section.get("hardware_type")
    if "hardware" in section:
        if ignore or hardware is not None:
            raise Refused("schema")
        hardware = read_hardware(section["hardware"], node_ranks)
    read_env_configs(section.get("env_configs", []), node_ranks)
    return Group(label, node_ranks, hardware, ignore)


def read_hardware(section: Any, node_ranks: list[int]) -> str:
    check_keys(section, {"type", "configs"}, {"type", "configs"})
    kind, configs = section["type"], section["configs"]
    if kind not in ROBOT_FIELDS:
        raise Refused("schema")
    for config in configs:
        check_keys(config, {"node_rank"}, {"node_rank", *ROBOT_FIELDS[kind].split()})
        if config["node_rank"] not in node_ranks:
            raise Refused("fit")
    if any(configs.count(config) > 1 for config in configs):
        raise Refused("schema")
    return str(kind)


def read_env_configs(configs: list[Any], node_ranks: list[int]) -> None:
    seen: list[int] = []
    for config in configs:
        check_keys(config, {"node_ranks"}, ENV_KEYS)
        seen += parse_ranks(config["node_ranks"], node_ranks)
    if len(set(seen)) < len(seen):
        raise Refused("rank")


def read_groups(sections: list[Any], num_nodes: int) -> tuple[dict[str, Group], dict[tuple[int, str], int], set[str]]:
    """The groups that stand, the robots of each (node, type), and the codes of other groups.

    Robots belong to the node: every group of their type that has the node counts them.
    """
    groups: dict[str, Group] = {}
    robots: dict[tuple[int, str], int] = {}
    codes: set[str] = set()
    for section in sections:
        try:
            group = read_group(section, num_nodes)
            if group.label in groups:
                raise Refused("name")
            configured = count_robots(section)
            if robots.keys() & configured.keys():
                raise Refused("schema")
            robots |= configured
            groups[group.label] = group
        except Refused as refusal:
            codes.add(refusal.code)
    everything = list(range(num_nodes))
    groups["cluster"] = Group("cluster", everything)
    groups["node"] = Group("node", everything, ignore_hardware=True)
    return groups, robots, codes


def count_robots(section: dict[str, Any]) -> dict[tuple[int, str], int]:
    if "hardware" not in section:
        return {}
    kind = section["hardware"]["type"]
    places = [(config["node_rank"], kind) for config in section["hardware"]["configs"]]
    return {place: places.count(place) for place in places}
