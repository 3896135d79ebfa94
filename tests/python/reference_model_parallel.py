"""Model-parallel placement: the roles actor, rollout, reward, inference, critic, critic_inference.

Written from RLinf's behaviour, but for where roost differs on purpose: node groups and process ranks
count, and whether two roles share accelerators is asked of the machines, not of their numbers.

Every fault that stands by itself is said: a role or a size that is wrong is left out, and what can be
judged without it is judged. Without actor or rollout nobody knows whether the two are collocated.
"""

from itertools import combinations
from typing import Any

from reference_cluster import ACCELERATOR, Cluster, Resource
from reference_place import Request, describe, place_hybrid
from reference_ranks import Refused

# Reward is the one role that may share accelerators with any other.
EXCLUSIVE = ("actor", "rollout", "inference", "critic", "critic_inference")
TENSOR = "tensor_model_parallel_size"


def find_members(names: list[str]) -> dict[str, str]:
    """Role -> component name. `inference` wins over `actor_inference` for the one role."""
    members = {role: role for role in (*EXCLUSIVE, "reward") if role in names}
    if "inference" not in members and "actor_inference" in names:
        members["inference"] = "actor_inference"
    return members


def look_up(config: dict[str, Any], *path: str) -> Any:
    value: Any = config
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


class Sizes:
    """How the models are split; None for a size that is wrong."""

    def __init__(self, config: dict[str, Any], codes: set[str]) -> None:
        self.config, self.codes = config, codes
        self.actor = self.read("actor", "model", TENSOR)
        self.rollout = self.read("rollout", "tensor_parallel_size")
        pipeline = self.read("rollout", "pipeline_parallel_size")
        self.engine = self.rollout * pipeline if self.rollout and pipeline else None
        fallback = self.read("actor_inference", "model", TENSOR, default=self.actor)
        self.inference = self.read("inference", "model", TENSOR, default=fallback)
        fallback = self.read("critic", "model", TENSOR)
        self.critic_inference = self.read("critic_inference", "model", TENSOR, default=fallback)

    def read(self, *path: str, default: int | None = 1) -> int | None:
        value = look_up(self.config, *path)
        if value is None:
            return default
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.codes.add("schema")
            return None
        return value


def require(fact: bool, code: str = "rank") -> None:
    if not fact:
        raise Refused(code)


def measure(roles: dict[str, Request], codes: set[str]) -> dict[str, Request]:
    """The roles that hold accelerators side by side."""
    good = {}
    for role, request in roles.items():
        ranks = request.hardware_ranks
        if any(unit.kind != ACCELERATOR for unit in request.resources):
            codes.add("hardware")
        elif ranks != list(range(ranks[0], ranks[-1] + 1)):
            codes.add("rank")
        else:
            good[role] = request
    return good


def place(
    config: dict[str, Any],
    sizes: Sizes,
    members: set[str],
    roles: dict[str, Request],
    cluster: Cluster,
    isolate: bool,
    codes: set[str],
) -> tuple[str, list[dict[str, Any]]]:
    """The mode word and the components of the roles; what is wrong is in codes.

    `members` are all roles that the config names, `roles` those that stand by themselves.
    """
    roles = measure(roles, codes)
    everything = cluster.resources(["cluster"])
    physical = {
        role: [cluster_wide(request.resources[rank], everything) for rank in request.hardware_ranks]
        for role, request in roles.items()
    }
    faults: set[str] = set()
    mode = choose_mode(config, members, physical, len(everything), faults)
    is_settled = mode != "unknown" and not faults and {"actor", "rollout"} <= physical.keys()
    codes |= faults
    check_sizes(config, sizes, mode, members, physical, codes)

    components = []
    for role, request in roles.items():
        try:
            component = None
            if role == "actor" and mode == "auto":
                ranks = list(range(len(everything)))
                held = [[unit] for unit in everything]
                component = describe("actor", "packed", ["cluster"], ranks, held, isolate)
            elif role == "rollout":
                component = place_rollout(
                    config, sizes, mode, is_settled, request, physical, everything, isolate, codes
                )
            elif mode == "collocated" and role in ("inference", "critic_inference"):
                pass  # it was refused
            elif request.has_explicit_processes:
                component = place_hybrid(request, isolate, codes)
            else:
                component = place_packed(request, 1, 1, isolate)
            if component is not None:
                components.append(component)
        except Refused as refusal:
            codes.add(refusal.code)
    return mode, components


def place_packed(request: Request, count: int, stride: int, isolate: bool) -> dict[str, Any]:
    ranks = request.hardware_ranks
    held = pack(request.resources, ranks[0], ranks[-1], count, stride)
    return describe(request.name, "packed", request.labels, ranks, held, isolate)


def place_rollout(
    config: dict[str, Any],
    sizes: Sizes,
    mode: str,
    is_settled: bool,
    request: Request,
    physical: dict[str, list[int]],
    everything: list[Resource],
    isolate: bool,
    codes: set[str],
) -> dict[str, Any] | None:
    """None when a size is wrong, or depends on what is."""
    count = len(physical["rollout"])
    if sizes.engine is None or sizes.rollout is None:
        if sizes.rollout is not None:
            require(sizes.rollout <= count)
        return None
    require(sizes.rollout <= count)
    if request.has_explicit_processes:
        check_engines(request, sizes.engine)
        return place_hybrid(request, isolate, codes)
    require(count % sizes.engine == 0)
    if mode == "auto" and look_up(config, "cluster", "use_pre_process_policy") is True:
        if not is_settled:
            return None
        # The rollout first serves on the actor's accelerators too.
        require(len(physical["actor"]) % sizes.engine == 0)
        last = physical["rollout"][-1]
        held = pack(everything, 0, last, sizes.engine, 1)
        ranks = list(range(last + 1))
        return describe("rollout", "packed", ["cluster"], ranks, held, isolate)
    stride: int | None = 1
    if mode == "collocated" or (not is_settled and mode != "auto"):
        stride = find_stride(sizes, mode)
    return None if stride is None else place_packed(request, sizes.engine, stride, isolate)


def find_stride(sizes: Sizes, mode: str) -> int | None:
    """None when it depends on a wrong size, or on a mode that is not known."""
    assert sizes.rollout is not None
    if sizes.actor is None:
        return None
    if sizes.actor <= sizes.rollout:
        return 1
    if mode != "collocated":
        return None
    require(sizes.actor % sizes.rollout == 0)
    return sizes.actor // sizes.rollout


def cluster_wide(unit: Resource, everything: list[Resource]) -> int:
    places = [(other.node.rank, other.local) for other in everything]
    return places.index((unit.node.rank, unit.local))


def choose_mode(
    config: dict[str, Any],
    members: set[str],
    physical: dict[str, list[int]],
    total: int,
    codes: set[str],
) -> str:
    """The mode, or unknown where it depends on a role that is wrong."""
    exclusive = [physical[role] for role in EXCLUSIVE if role in physical]
    is_disjoint = all(not set(one) & set(other) for one, other in combinations(exclusive, 2))
    if look_up(config, "cluster", "auto_scheduler") is True and "critic" not in members:
        if not is_disjoint or not is_in_line(members, physical, total):
            codes.add("rank")
        return "auto"
    if not {"actor", "rollout"} <= physical.keys():
        return "unknown"
    if physical["actor"] == physical["rollout"]:
        if members & {"inference", "critic_inference"}:
            codes.add("rank")
        return "collocated"
    if not is_disjoint:
        codes.add("rank")
    return "disaggregated"


def is_in_line(members: set[str], physical: dict[str, list[int]], total: int) -> bool:
    """actor, rollout and inference follow each other over the whole cluster, as far as known."""
    last_end: int | None = -1
    for role in ("actor", "rollout", "inference"):
        if role not in physical:
            last_end = None if role in members or role != "inference" else last_end
            continue
        if last_end is not None and physical[role][0] != last_end + 1:
            return False
        last_end = physical[role][-1]
    return last_end is None or last_end == total - 1


def check_sizes(
    config: dict[str, Any],
    sizes: Sizes,
    mode: str,
    members: set[str],
    physical: dict[str, list[int]],
    codes: set[str],
) -> None:
    """All but the rollout's, which are judged where it is placed."""
    limits = {"actor": sizes.actor}
    if mode != "collocated":
        limits |= {"inference": sizes.inference, "critic_inference": sizes.critic_inference}
        recomputes = look_up(config, "algorithm", "recompute_logprobs") is True
        if "inference" in members and not recomputes:
            codes.add("schema")
    for role, size in limits.items():
        if size is not None and role in physical and size > len(physical[role]):
            codes.add("rank")


def check_engines(rollout: Request, engine: int) -> None:
    """A process the user laid out himself must hold whole engines."""
    for share in rollout.shares:
        units_each = max(1, len(share.resources) // len(share.processes))
        require(units_each % engine == 0)


def pack(units: list[Resource], first: int, last: int, count: int, stride: int) -> list[list[Resource]]:
    """The lowest unused rank s takes s, s+stride, ... until it has count; repeat."""
    require(last < len(units), "fit")
    require((last - first + 1) % (count * stride) == 0)
    unused = list(range(first, last + 1))
    held = []
    while unused:
        ranks = [unused[0] + k * stride for k in range(count)]
        for rank in ranks:
            unused.remove(rank)
        held.append([units[rank] for rank in ranks])
    return held
