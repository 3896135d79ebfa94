"""Random configs with the cluster they are planned against, as Hypothesis strategies.

A case is built to be valid, step by step; then, for about a quarter, it is broken in one named way
(now and then two). So a refusal has one cause, and what it should be called is not in doubt. The
model is asked only what ranks mean (to write valid ones), never whether a case is good.
"""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import generate_faults
import generate_model_parallel
from emit import emit_yaml
from generate_cluster import Dice, Machines, draw_machines
from generate_placement import Layout, draw_placement
from reference_cluster import ROBOT_FIELDS
from reference_ranks import Refused

NAMES = ["actor", "rollout", "env", "reward", "inference", "agent", "critic", "env.sim", "v2-judge"]
LABELS = ["a800", "4090", "robots", "Node", "cpu_1", "train.big"]
# Two robots of one type on one node must differ in some field; Turtle2 has none to differ in.
DISTINCT_FIELD = {
    "Franka": "robot_ip",
    "DualFranka": "left_robot_ip",
    "DOSW1": "robot_url",
    "GimArm": "can_interface",
}


@dataclass(frozen=True)
class Case:
    config: dict[str, Any]
    machines: Machines
    mode: str  # as --mode takes it
    isolate: bool

    @property
    def config_text(self) -> str:
        return emit_yaml(self.config)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    dice = Dice(draw)
    isolate = not dice.chance(30)
    if dice.chance(30):
        config, machines = generate_model_parallel.draw_config(dice)
        return Case(config, machines, "model-parallel", isolate)
    config, machines = draw_hybrid(dice)
    return Case(config, machines, "hybrid", isolate)


def draw_hybrid(dice: Dice) -> tuple[dict[str, Any], Machines]:
    machines = draw_machines(dice, 6, [8, 4, 2, 0, 1, 3, 5, 6, 7, 8])
    num_nodes = len(machines.nodes)
    if num_nodes > 1 and dice.chance(15):
        num_nodes = dice.number(1, num_nodes - 1)  # the nodes past it are left alone
    section: dict[str, Any] = {"num_nodes": num_nodes}
    if dice.chance(10):
        section["num_nodes"] = str(num_nodes)  # a quoted number is a number
    groups = draw_groups(dice, num_nodes)
    if groups:
        section["node_groups"] = groups
    layout = Layout(section, machines)
    section["component_placement"] = draw_components(dice, layout)
    config: dict[str, Any] = {"cluster": section}
    if dice.chance(10):
        config["runner"] = {"max_steps": 4, "log": {"level": "info"}}  # not ours: left alone
    if dice.chance(33):
        generate_faults.break_config(dice, config, layout)
    return config, machines


def draw_groups(dice: Dice, num_nodes: int) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    taken: set[tuple[int, str]] = set()  # (node, robot type) may be configured by one group only
    everything = list(range(num_nodes))
    is_apart = dice.chance(40)  # groups without a common node can be joined where ranks mean nodes
    free = everything
    for label in dice.sample(LABELS, dice.pick([0, 1, 2, 2, 3])):
        node_ranks = dice.subset(free or everything)
        if is_apart:
            free = [rank for rank in free if rank not in node_ranks]
        group: dict[str, Any] = {"label": int(label) if label == "4090" else label}
        group["node_ranks"] = write_node_ranks(dice, node_ranks, num_nodes)
        flavour = dice.pick(["plain", "ignore", "robots", "plain", "robots", "ignore", "typed"])
        if flavour == "robots":
            hardware = draw_robots(dice, node_ranks, taken)
            if hardware["configs"]:
                group["hardware"] = hardware
        elif flavour == "ignore":
            group["ignore_hardware"] = True
        elif flavour == "typed":
            group["hardware_type"] = "Accelerator"
            if dice.chance(20):
                group["ignore_hardware"] = True  # the named type wins
        if dice.chance(20):
            group["env_configs"] = draw_env_configs(dice, node_ranks)
        groups.append(group)
    return groups


def write_node_ranks(dice: Dice, ranks: list[int], num_nodes: int) -> Any:
    """One of the ways to write the same set: all, list, range, any order, overlaps."""
    forms: list[Any] = [ranks, ",".join(map(str, ranks))]
    forms.append(", ".join(map(str, reversed(ranks))) + ",")
    if len(ranks) == 1:
        forms.append(ranks[0])
    if ranks == list(range(ranks[0], ranks[-1] + 1)):
        forms.append(f"{ranks[0]}-{ranks[-1]}")
        forms.append(f" {ranks[0]:02} - +{ranks[-1]} , {ranks[0]}")
    if len(ranks) == num_nodes:
        forms += ["all", "ALL"]
    return dice.pick(forms)


def draw_robots(dice: Dice, node_ranks: list[int], taken: set[tuple[int, str]]) -> dict[str, Any]:
    kind = dice.pick(list(ROBOT_FIELDS))
    configs: list[dict[str, Any]] = []
    for node_rank in node_ranks:
        if (node_rank, kind) in taken:
            continue
        for number in range(dice.number(0, 3)):
            config: dict[str, Any] = {"node_rank": node_rank}
            if kind in DISTINCT_FIELD:
                address = f"can{number}" if kind == "GimArm" else f"10.9.{node_rank}.{number + 1}"
                config[DISTINCT_FIELD[kind]] = address
            if config not in configs:
                configs.append(config)
            taken.add((node_rank, kind))
    return {"type": kind, "configs": dice.shuffled(configs)}


def draw_env_configs(dice: Dice, node_ranks: list[int]) -> list[dict[str, Any]]:
    if len(node_ranks) == 1 or dice.chance(40):
        return [{"node_ranks": "all", "env_vars": [{"LOG": "debug"}, {"TRIES": 3}]}]
    # The same variable on two nodes of a group is right, with two values.
    return [{"node_ranks": rank, "env_vars": [{"WHERE": f"node{rank}"}]} for rank in node_ranks[:2]]


def draw_components(dice: Dice, layout: Layout) -> dict[str, Any]:
    names = dice.sample(NAMES, dice.number(1, 5))
    components: dict[str, Any] = {}
    while names:
        together = 2 if len(names) > 1 and dice.chance(25) else 1
        key = dice.pick([",", ", ", " , "]).join(names[:together])
        names = names[together:]
        components[key] = draw_component(dice, layout)
    return components


def draw_component(dice: Dice, layout: Layout) -> Any:
    labels = draw_labels(dice, layout)
    try:
        text = draw_placement(dice, layout.resources(labels or ["cluster"]))
    except Refused:  # groups that share a node, or without hardware: not for a valid component
        labels = None
        text = draw_placement(dice, layout.resources(["cluster"]))
    placement: Any = int(text) if text.isdecimal() and not text.startswith("0") else text
    if labels is None:
        return {"placement": placement} if dice.chance(30) else placement
    forms: list[Any] = [",".join(labels), ", ".join(labels), list(labels)]
    if labels == ["4090"]:
        forms.append(4090)
    return {"node_group": dice.pick(forms), "placement": placement}


def draw_labels(dice: Dice, layout: Layout) -> list[str] | None:
    """None: the default group, not named at all."""
    configured = layout.labels
    if not configured or dice.chance(35):
        return dice.pick([None, None, ["node"], ["cluster"]])
    if len(configured) > 1 and dice.chance(40):
        return dice.sample(configured + (["cluster"] if dice.chance(20) else []), 2)
    return [dice.pick(configured)]
