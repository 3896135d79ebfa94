"""Model-parallel placement: the roles actor, rollout, reward, inference, critic, critic_inference.

Written from spec/rlinf.md 5.3 with W20-W25 as its section 10 says: node groups and process ranks
count, and whether two roles share accelerators is asked of the machines, not of their numbers.
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


def read_size(config: dict[str, Any], *path: str, default: int = 1) -> int:
    value = look_up(config, *path)
    if value is None:
        return default
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refused("schema")
    return value


def require(fact: bool, code: str = "rank") -> None:
    if not fact:
        raise Refused(code)


def place(
    config: dict[str, Any], roles: dict[str, Request], cluster: Cluster, isolate: bool
) -> tuple[str, list[dict[str, Any]]]:
    """The mode word and the components of the roles, or Refused."""
    for request in roles.values():
        require(all(unit.kind == ACCELERATOR for unit in request.resources), "hardware")
        ranks = request.hardware_ranks
        require(ranks == list(range(ranks[0], ranks[-1] + 1)))

    everything = cluster.resources(["cluster"])
    physical = {
        role: [cluster_wide(request.resources[rank], everything) for rank in request.hardware_ranks]
        for role, request in roles.items()
    }
    mode = choose_mode(config, physical, len(everything))

    actor_tp = read_size(config, "actor", "model", TENSOR)
    rollout_tp = read_size(config, "rollout", "tensor_parallel_size")
    engine = rollout_tp * read_size(config, "rollout", "pipeline_parallel_size")
    if mode != "collocated":
        check_inference(config, physical, actor_tp)
    require(actor_tp <= len(physical["actor"]))
    require(rollout_tp <= len(physical["rollout"]))
    require(len(physical["rollout"]) % engine == 0)

    components = []
    for role, request in roles.items():
        first, last = request.hardware_ranks[0], request.hardware_ranks[-1]
        units, labels, count, stride = request.resources, request.labels, 1, 1
        if role == "actor" and mode == "auto":
            units, labels, first, last = everything, ["cluster"], 0, len(everything) - 1
        elif request.has_explicit_processes:
            if role == "rollout":
                check_engines(request, engine)
            components.append(place_hybrid(request, isolate))
            continue
        elif role == "rollout":
            count = engine
            if mode == "collocated" and actor_tp > rollout_tp:
                require(actor_tp % rollout_tp == 0)
                stride = actor_tp // rollout_tp
            if mode == "auto" and look_up(config, "cluster", "use_pre_process_policy") is True:
                # The rollout first serves on the actor's accelerators too.
                require(len(physical["actor"]) % engine == 0)
                units, labels = everything, ["cluster"]
                first, last = 0, physical["rollout"][-1]
        held = pack(units, first, last, count, stride)
        ranks = list(range(first, last + 1))
        components.append(describe(request.name, "packed", labels, ranks, held, isolate))
    return mode, components


def cluster_wide(unit: Resource, everything: list[Resource]) -> int:
    places = [(other.node.rank, other.local) for other in everything]
    return places.index((unit.node.rank, unit.local))


def choose_mode(config: dict[str, Any], physical: dict[str, list[int]], total: int) -> str:
    exclusive = [physical[role] for role in EXCLUSIVE if role in physical]
    is_disjoint = all(not set(one) & set(other) for one, other in combinations(exclusive, 2))
    if look_up(config, "cluster", "auto_scheduler") is True and "critic" not in physical:
        require(is_disjoint)
        next_rank = 0
        for role in ("actor", "rollout", "inference"):
            if role in physical:
                require(physical[role][0] == next_rank)
                next_rank = physical[role][-1] + 1
        require(next_rank == total)
        return "auto"
    if physical["actor"] == physical["rollout"]:
        require("inference" not in physical and "critic_inference" not in physical)
        return "collocated"
    require(is_disjoint)
    return "disaggregated"


def check_inference(config: dict[str, Any], physical: dict[str, list[int]], actor_tp: int) -> None:
    if "inference" in physical:
        fallback = read_size(config, "actor_inference", "model", TENSOR, default=actor_tp)
        size = read_size(config, "inference", "model", TENSOR, default=fallback)
        require(size <= len(physical["inference"]))
        require(look_up(config, "algorithm", "recompute_logprobs") is True, "schema")
    if "critic_inference" in physical:
        fallback = read_size(config, "critic", "model", TENSOR)
        size = read_size(config, "critic_inference", "model", TENSOR, default=fallback)
        require(size <= len(physical["critic_inference"]))


def check_engines(rollout: Request, engine: int) -> None:
    """A process the user laid out himself must hold whole engines."""
    for share in rollout.shares:
        units_each = max(1, len(share.resources) // len(share.processes))
        require(units_each % engine == 0)


def pack(
    units: list[Resource], first: int, last: int, count: int, stride: int
) -> list[list[Resource]]:
    """Spec 4.2: the lowest unused rank s takes s, s+stride, ... until it has count; repeat."""
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
