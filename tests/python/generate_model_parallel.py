"""Random model-parallel configs: roles on slices of one line of accelerators, sizes that fit."""

from typing import Any

from generate_cluster import Dice, Machines, draw_machines
from generate_placement import Layout, chunk_sizes, draw_placement, is_one_process
from reference_cluster import Resource
from reference_model_parallel import cluster_wide, pack
from reference_ranks import Refused

Slice = tuple[int, int]  # first and last rank on the line


class Scene:
    """The line the roles are cut from, and what is decided about them so far."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.machines: Machines = draw_machines(dice, 4, [4, 8, 2, 6, 8, 5])
        count = len(self.machines.nodes)
        self.section: dict[str, Any] = {"num_nodes": count}
        self.labels: list[str] | None = None
        self.is_whole = True  # the line is the whole cluster, in its own order
        if count > 1 and dice.chance(40):
            self.labels = self._draw_groups(count)
        layout = Layout(self.section, self.machines)
        self.everything = layout.resources(["cluster"])
        self.line = layout.resources(self.labels or ["cluster"])
        self.slices: dict[str, Slice] = {}
        self.texts: dict[str, str] = {}  # where a role is not simply first-last
        self.config: dict[str, Any] = {"algorithm": {"recompute_logprobs": True}}
        self.engine = 1

    def _draw_groups(self, count: int) -> list[str]:
        order = self.dice.shuffled(list(range(count)))
        cut = self.dice.number(1, count)
        one, other = sorted(order[:cut]), sorted(order[cut:])
        self.section["node_groups"] = [{"label": "big", "node_ranks": one}]
        labels = ["big"]
        if other and self.dice.chance(50):
            self.section["node_groups"].append({"label": "small", "node_ranks": other})
            labels.append("small")
        self.is_whole = (one + other if len(labels) == 2 else one) == list(range(count))
        return labels

    def units(self, role: str) -> list[Resource]:
        first, last = self.slices[role]
        return self.line[first : last + 1]

    def size(self, role: str) -> int:
        return len(self.units(role))

    def set_size(self, value: Any, *path: str) -> None:
        section = self.config
        for key in path[:-1]:
            section = section.setdefault(key, {})
        section[path[-1]] = value

    def write(self) -> dict[str, Any]:
        """The config; roles with the same value are sometimes joined under one key."""
        values = {role: self._write_role(role) for role in self.dice.shuffled(list(self.slices))}
        if self.dice.chance(25):
            values["env"] = draw_placement(self.dice, self.everything)
        if self.dice.chance(15):
            values["agent"] = {"node_group": "node", "placement": "all"}
        components: dict[str, Any] = {}
        is_joined = self.dice.chance(50)
        for name, value in values.items():
            equal = [key for key in components if components[key] == value]
            if is_joined and equal:
                key = equal[0]
                components = {f"{k},{name}" if k == key else k: item for k, item in components.items()}
            else:
                components[name] = value
        self.section["component_placement"] = components
        return {"cluster": self.section, **self.config}

    def _write_role(self, role: str) -> Any:
        first, last = self.slices[role]
        text = self.texts.get(role, f"{first}-{last}")
        if self.labels is None:
            return text
        places = [cluster_wide(unit, self.everything) for unit in self.units(role)]
        is_straight = places == list(range(places[0], places[-1] + 1))
        if role not in self.texts and places and is_straight and self.dice.chance(25):
            return f"{places[0]}-{places[-1]}"  # the same machines, counted cluster-wide
        return {"node_group": list(self.labels), "placement": text}


def draw_config(dice: Dice) -> tuple[dict[str, Any], Machines]:
    scene = Scene(dice)
    mode = dice.pick(["collocated", "disaggregated", "auto"])
    if mode == "auto" and not scene.is_whole:
        mode = "disaggregated"
    if mode == "collocated" or len(scene.line) < 6:
        draw_collocated(scene)
    else:
        draw_separate(scene, is_auto=mode == "auto")
    if dice.chance(40):
        break_scene(scene)
        # One fault must not hide another.
        if {"actor", "rollout", "reward"} <= scene.slices.keys() and dice.chance(35):
            break_scene(scene)
    return scene.write(), scene.machines


def draw_slice(scene: Scene) -> Slice:
    kind = scene.dice.pick(["whole", "node", "node", "any"])
    if kind == "whole":
        return 0, len(scene.line) - 1
    if kind == "node":  # one node's accelerators: a length that sizes divide
        node = scene.dice.pick(scene.line).node
        ranks = [rank for rank, unit in enumerate(scene.line) if unit.node == node]
        return ranks[0], ranks[-1]
    first = scene.dice.pick([0, 0, scene.dice.number(0, len(scene.line) - 1)])
    return first, scene.dice.number(first, len(scene.line) - 1)


def is_packable(units: list[Resource], count: int, stride: int = 1) -> bool:
    try:
        return all(map(is_one_process, pack(units, 0, len(units) - 1, count, stride)))
    except Refused:
        return False


def draw_collocated(scene: Scene) -> None:
    dice = scene.dice
    scene.slices["actor"] = scene.slices["rollout"] = draw_slice(scene)
    scene.slices["reward"] = scene.slices["actor"] if dice.chance(60) else draw_slice(scene)
    if dice.chance(20):
        scene.slices["critic"] = draw_slice(scene)
    units = scene.units("rollout")
    sizes = [
        (tp, pp, stride)
        for stride in (2, 1, 4)
        for tp in (2, 1, 4)
        for pp in (1, 2)
        if stride * tp <= len(units) and is_packable(units, tp * pp, stride)
    ]
    # Strided engines are the rare ones: most lengths do not divide by count times stride.
    strided = [(tp, pp, stride) for tp, pp, stride in sizes if tp * pp > 1 and stride > 1]
    tp, pp, stride = dice.pick(strided if strided and dice.chance(75) else sizes)
    actor_tp = tp * stride if stride > 1 else dice.pick([1, tp])
    set_sizes(scene, actor_tp, tp, pp)
    draw_explicit(scene)


def draw_separate(scene: Scene, is_auto: bool) -> None:
    dice = scene.dice
    roles = ["actor", "rollout"]
    if dice.chance(50):
        roles.append(dice.pick(["inference", "actor_inference"]))
    if not is_auto:
        roles += [role for role in ("critic", "critic_inference") if dice.chance(30)]
        roles = dice.shuffled(roles)
    # Cut the line once for each role; auto leaves no gap, the others may.
    total = len(scene.line)
    inner = sorted(dice.sample(list(range(1, total)), len(roles) - 1))
    cuts = [0, *inner, total]
    for role, first, stop in zip(roles, cuts, cuts[1:], strict=False):
        last = stop - 1
        if not is_auto and last > first and dice.chance(25):
            last -= 1
        scene.slices[role] = (first, last)
    scene.slices["reward"] = scene.slices["rollout"] if dice.chance(50) else draw_slice(scene)

    units = scene.units("rollout")
    sizes = [(tp, pp) for tp in (2, 1, 4) for pp in (1, 2) if tp <= len(units) and is_packable(units, tp * pp)]
    tp, pp = dice.pick(sizes)
    actor_tp = min(dice.pick([1, 2, 4]), scene.size("actor"))
    set_sizes(scene, actor_tp, tp, pp)
    for role in ("inference", "actor_inference"):
        if role in roles and (actor_tp > scene.size(role) or dice.chance(30)):
            model = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1}
            scene.config[role] = {"model": model}
    if dice.chance(50):
        draw_explicit(scene)
    if is_auto:
        scene.section["auto_scheduler"] = True
        through = scene.everything[: scene.slices["rollout"][1] + 1]
        is_possible = scene.size("actor") % scene.engine == 0 and is_packable(through, scene.engine)
        if is_possible and "rollout" not in scene.texts and dice.chance(50):
            scene.section["use_pre_process_policy"] = True
    elif "critic" in roles and dice.chance(30):
        scene.section["auto_scheduler"] = True  # a critic keeps it from being auto


def set_sizes(scene: Scene, actor_tp: int, rollout_tp: int, rollout_pp: int) -> None:
    scene.engine = rollout_tp * rollout_pp
    if actor_tp != 1 or scene.dice.chance(50):
        scene.set_size(actor_tp, "actor", "model", "tensor_model_parallel_size")
    scene.set_size(rollout_tp, "rollout", "tensor_parallel_size")
    if rollout_pp != 1 or scene.dice.chance(50):
        scene.set_size(rollout_pp, "rollout", "pipeline_parallel_size")


def draw_explicit(scene: Scene) -> None:
    """Process ranks written out for some roles; a rollout's processes hold whole engines."""
    for role, (first, last) in scene.slices.items():
        if not scene.dice.chance(20):
            continue
        sizes = chunk_sizes(scene.units(role))
        if role == "rollout":
            sizes = [size for size in sizes if size % scene.engine == 0]
        if sizes:
            processes = scene.size(role) // scene.dice.pick(sizes)
            scene.texts[role] = f"{first}-{last}:0-{processes - 1}"


def break_scene(scene: Scene) -> None:
    dice = scene.dice
    fault = dice.pick(
        ["missing", "overlap", "gap", "tensor", "engine", "size", "recompute", "node", "beyond"]
        + ["crossing", "auto", "shared", "text"]
    )
    total = len(scene.line)
    if fault == "missing":
        del scene.slices[dice.pick(["actor", "rollout", "reward"])]
    elif fault == "overlap":  # not allowed beside a collocated pair, and not on the actor's place
        scene.slices["critic_inference"] = scene.slices["actor"]
        scene.texts.pop("critic_inference", None)
    elif fault == "gap" and total > 2:
        scene.texts[dice.pick(list(scene.slices))] = "0,2"
    elif fault == "tensor":
        scene.set_size(scene.size("actor") + 1, "actor", "model", "tensor_model_parallel_size")
    elif fault == "engine":
        scene.set_size(scene.size("rollout") + 1, "rollout", "pipeline_parallel_size")
    elif fault == "size":
        value = dice.pick([0, -1, "two", "1.5", True])
        if dice.chance(50):
            scene.set_size(value, "actor", "model", "tensor_model_parallel_size")
        else:
            scene.set_size(value, "rollout", "tensor_parallel_size")
    elif fault == "recompute":
        scene.config["algorithm"]["recompute_logprobs"] = False
    elif fault == "beyond":
        scene.texts["reward"] = dice.pick([f"{total}", f"0-{total}"])
    elif fault == "crossing" and "rollout" not in scene.texts:
        scene.section.pop("use_pre_process_policy", None)
        scene.config["rollout"] = {"tensor_parallel_size": scene.size("rollout")}
        scene.config.pop("actor", None)
    elif fault == "auto":
        scene.section["auto_scheduler"] = True
    elif fault == "shared" and scene.engine > 1:  # half an engine for each process
        first, last = scene.slices["rollout"]
        scene.texts["rollout"] = f"{first}-{last}:0-{2 * (last - first + 1) - 1}"
    elif fault == "node":
        scene.section["node_groups"] = [
            *scene.section.get("node_groups", []),
            {"label": "hands", "node_ranks": "all", "ignore_hardware": True},
        ]
        scene.labels = ["hands"]
        scene.texts = {role: "all" for role in scene.slices}
    else:
        scene.texts[dice.pick(list(scene.slices))] = dice.pick(["0-1:1-2", "x", "", "3-1"])
