"""One named way each to make a valid hybrid config wrong.

Faults of a placement come as one more component, so that the others stay right beside it.
"""

from collections.abc import Callable
from typing import Any

from generate_cluster import Dice
from generate_placement import Layout

MALFORMED = ["a", "1.0", "0--3", "-1", "1-", "0-1-2", "0x3", "1_0", "0:0:0", "0:", ":0", "0:all"]
MALFORMED += ["0:ALL", "", " , ", "3-1", "0;1", "0 1", "true", "0:1-0", "0-3,5-x", "1e3"]
MALFORMED += ["\u0663", "0-\uff13"]  # digits, but not ASCII ones
# Wrong whatever the cluster, and with no rank above 1 that a small cluster might not have.
DISORDERED = ["0,0", "all,0", "0,all", "0:1", "0:0,0:1", "0:1,0:0", "0:5-6"]
DISORDERED_PAIR = ["1,0", "0-1,1", "0-1:1-2", "0:0,1:2", "0:1,1:0", "0:0-1,1:1-2", "0:0-3,1:2"]
BAD_NAMES = ["actor,", ",", "a b", "-x", ".x", "x/y", "x" * 64, "a:b", "\u00e9"]
BAD_LABELS = ["cluster", "node", "", "a,b", "a b", "-x", "x" * 64]
TOO_LARGE = ["2147483648", "0-2147483648", "0:0-99999999999", "0:0-16777216", "9" * 40]
PAST_THE_END = 2**31 - 1


def add_component(config: dict[str, Any], value: Any, name: str = "broken") -> None:
    # Two faults in one config need two names.
    components = config["cluster"]["component_placement"]
    while name in components:
        name += "_"
    components[name] = value


def add_group(config: dict[str, Any], label: str, node_ranks: Any, **keys: Any) -> str:
    groups = config["cluster"].setdefault("node_groups", [])
    while any(str(group.get("label")) == label for group in groups):
        label += "_"
    groups.append({"label": label, "node_ranks": node_ranks, **keys})
    return label


def franka(node_rank: int, number: int = 1) -> dict[str, Any]:
    return {"node_rank": node_rank, "robot_ip": f"10.8.{node_rank}.{number}"}


def malformed_text(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    add_component(config, dice.pick(MALFORMED))


def disordered_text(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    has_pair = len(layout.resources(["cluster"])) > 1
    add_component(config, dice.pick(DISORDERED + (DISORDERED_PAIR if has_pair else [])))


def several_slips(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    """Entries drawn without regard to each other: every one may be wrong by itself."""
    total = len(layout.resources(["cluster"]))
    texts = []
    for _ in range(dice.number(2, 4)):
        first = dice.number(0, total)
        last = dice.pick([first, first, first + dice.number(1, 3)])
        text = f"{first}-{last}"
        if dice.chance(60):
            process = dice.number(0, 4)
            text += f":{process}-{process + dice.pick([0, 0, last - first, 1, 2])}"
        texts.append(dice.pick(MALFORMED) if dice.chance(10) else text)
    label = {"node_group": dice.pick(["node", "nowhere"])} if dice.chance(20) else {}
    add_component(config, {"placement": ",".join(texts), **label})


def number_too_large(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    add_component(config, dice.pick(TOO_LARGE))


def rank_beyond(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    total = len(layout.resources(["cluster"]))
    text = dice.pick([f"{total}", f"0-{total}", f"all,{total}", f"0-{PAST_THE_END}:0"])
    label = dice.pick([None, "node"])
    if label == "node":
        text = str(len(layout.cluster.nodes) + dice.number(0, 2))
    add_component(config, {"placement": text} | ({"node_group": label} if label else {}))


def process_across_nodes(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    units = layout.resources(["cluster"])
    if units[0].kind is None or units[0].node == units[-1].node:
        return rank_beyond(dice, config, layout)
    crossings = [i for i in range(len(units) - 1) if units[i].node != units[i + 1].node]
    first = dice.pick(crossings)
    add_component(config, dice.pick([f"{first}-{first + 1}:0", "all:0"]))


def not_divisible(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    units = layout.resources(["cluster"])
    if units[0].kind is None:  # nodes: only fewer processes than nodes is wrong
        if len(units) == 1:
            return malformed_text(dice, config, layout)
        return add_component(config, f"all:0-{len(units) - 2}")
    if len(units) < 3:
        return malformed_text(dice, config, layout)
    return add_component(config, dice.pick(["0-2:0-1", "0-1:0-2", "0-2:0-3"]))


def unknown_group(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    label = dice.pick(["nowhere", "Cluster", "cluster,nowhere", ["nowhere"], 17])
    add_component(config, {"node_group": label, "placement": "0"})


def group_without_units(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    # Nobody configures a Turtle2 with this label's nodes unless the config already has one there.
    kinds = {kind for _, kind in layout.cluster.robots}
    kind = next(kind for kind in ("Turtle2", "GimArm", "DOSW1", "Franka") if kind not in kinds)
    label = add_group(config, "ghost", 0, hardware_type=kind)
    add_component(config, {"node_group": label, "placement": dice.pick(["0", "all"])})


def mixed_types(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    """A process with an accelerator and a robot of the same node."""
    taken = {rank for rank, kind in layout.cluster.robots if kind == "Franka"}
    nodes = [n for n in layout.cluster.nodes if n.accelerators and n.rank not in taken]
    groups = config["cluster"].get("node_groups", [])
    if not nodes or any("robot_ip" in str(group) for group in groups):
        return group_without_units(dice, config, layout)
    node = dice.pick(nodes)
    gpus = add_group(config, "mixed_gpus", node.rank)
    hardware = {"type": "Franka", "configs": [franka(node.rank)]}
    robots = add_group(config, "mixed_robots", node.rank, hardware=hardware)
    last = node.accelerators
    text = f"{last - 1}-{last}:0"
    return add_component(config, {"node_group": [gpus, robots], "placement": text})


def one_unit_twice(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    """Two groups on one node, and a process that gets the same accelerator through both."""
    nodes = [node for node in layout.cluster.nodes if node.accelerators]
    if not nodes:
        return node_in_two_groups(dice, config, layout)
    node = dice.pick(nodes)
    labels = [add_group(config, "twin_a", node.rank), add_group(config, "twin_b", node.rank)]
    return add_component(config, {"node_group": ",".join(labels), "placement": "all:0"})


def node_in_two_groups(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    label = add_group(config, "hands", 0, ignore_hardware=True)
    labels = dice.shuffled([label, dice.pick(["node", "cluster"])])
    add_component(config, {"node_group": labels, "placement": "0"})


def bad_component_name(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    add_component(config, "all", dice.pick(BAD_NAMES))


def component_twice(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    add_component(config, "all", "again,once")
    add_component(config, "all", "again")


def bad_component_keys(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    options = [{"node_group": "cluster"}, {"placement": "all", "node_groups": "cluster"}]
    add_component(config, dice.pick(options))


def bad_num_nodes(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    config["cluster"]["num_nodes"] = dice.pick([0, -1, "two", "1.5", True, ""])


def missing_or_unknown_key(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    section = config["cluster"]
    key = dice.pick(["num_nodes", "component_placement", "node_group"])
    if key in section:
        del section[key]
    else:
        section[key] = "all"


def too_few_nodes(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    config["cluster"]["num_nodes"] = 6 + dice.number(1, 3)


def bad_node_ranks(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    count = len(layout.cluster.nodes)
    beyond = [count, f"0-{count}", [0, count], "0-2147483647"]
    add_group(config, "lost", dice.pick([*beyond, "", ",", "1-0", "x", "2147483648", "0:0"]))


def bad_label(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    groups = config["cluster"].setdefault("node_groups", [])
    used = [group["label"] for group in groups if "label" in group]
    groups.append({"label": dice.pick([*BAD_LABELS, *used]), "node_ranks": 0})


def bad_group_keys(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    groups = config["cluster"].setdefault("node_groups", [])
    robots = {"type": "Franka", "configs": [franka(0)]}
    options: list[dict[str, Any]] = [
        {"node_ranks": 0},
        {"label": "keys"},
        {"label": "keys", "node_ranks": 0, "nodes": 1},
        {"label": "keys", "node_ranks": 0, "hardware": {"type": "Franka", "configs": [{}]}},
        {"label": "keys", "node_ranks": 0, "hardware": robots, "ignore_hardware": True},
    ]
    groups.append(dice.pick(options))


def strange_node(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    """env_configs or a robot on a node the group does not have."""
    other = len(layout.cluster.nodes)
    if other > 1 and dice.chance(50):
        other = 1
    keys: dict[str, Any] = {"env_configs": [{"node_ranks": other, "env_vars": [{"A": "1"}]}]}
    if dice.chance(50):
        keys = {"hardware": {"type": "Franka", "configs": [franka(other)]}}
    add_group(config, "strange", 0, **keys)


def robot_twice(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    if dice.chance(50):
        hardware = {"type": "Franka", "configs": [franka(0, 9), franka(0, 9)]}
        add_group(config, "echo", 0, hardware=hardware)
        return
    for number in (8, 9):  # one node and type, configured by two groups
        add_group(config, "echo", 0, hardware={"type": "Franka", "configs": [franka(0, number)]})


Fault = Callable[[Dice, dict[str, Any], Layout], None]
OF_COMPONENTS: list[Fault] = [
    malformed_text,
    disordered_text,
    several_slips,
    several_slips,
    number_too_large,
    number_too_large,
    rank_beyond,
    rank_beyond,
    process_across_nodes,
    not_divisible,
    unknown_group,
    unknown_group,
    group_without_units,
    mixed_types,
    one_unit_twice,
    node_in_two_groups,
    bad_component_name,
    component_twice,
    bad_component_keys,
]
OF_CLUSTER: list[Fault] = [
    bad_num_nodes,
    missing_or_unknown_key,
    too_few_nodes,
    bad_node_ranks,
    bad_label,
    bad_group_keys,
    strange_node,
    robot_twice,
]


def break_config(dice: Dice, config: dict[str, Any], layout: Layout) -> None:
    dice.pick(OF_COMPONENTS + OF_CLUSTER)(dice, config, layout)
    if "component_placement" in config["cluster"] and dice.chance(15):
        dice.pick(OF_COMPONENTS)(dice, config, layout)
