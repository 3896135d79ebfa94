"""An independent model of `roost plan`, written from roost's documents and RLinf's behaviour, not from the C.

It is slow and plain on purpose: everything is a list, nothing is computed ahead. plan() takes a
config as the YAML's own dicts and lists, and nodes as a snapshot's; it answers with the plan, or
with the code words of all that is wrong and does not follow from something else that is. An entry
of a placement is wrong for the first of: text, bounds, order, divisibility, one node, distinct
units, one hardware type; its processes' numbers are judged beside its bounds and order.
"""

from dataclasses import dataclass, field
from typing import Any

import reference_model_parallel
from reference_cluster import (
    NAME,
    Cluster,
    Resource,
    check_keys,
    order_nodes,
    read_groups,
)
from reference_place import Request, check_deals, check_shares, place_hybrid
from reference_ranks import MAX_PROCESSES, MAX_RANK, Refused, number_entries, parse_placement

EXIT = {"schema": 3, "reference": 3, "rank": 3, "name": 3, "limit": 3, "fit": 4, "hardware": 4}
REQUIRED_KEYS = {"num_nodes", "component_placement"}
CLUSTER_KEYS = REQUIRED_KEYS | {
    "node_groups",
    "profiling",
    "net_emulation",
    "tracer",
    "auto_scheduler",
    "use_pre_process_policy",
    "use_wait_before_last_iter_policy",
    "recreate_nccl_groups",
}


@dataclass(frozen=True)
class Answer:
    """Either components (and the mode), or the codes of a refusal."""

    mode: str = ""
    components: list[dict[str, Any]] = field(default_factory=list)
    codes: frozenset[str] = frozenset()

    @property
    def exit(self) -> int:
        if not self.codes:
            return 0
        return 3 if any(EXIT[code] == 3 for code in self.codes) else 4


def plan(
    config: dict[str, Any],
    nodes: list[dict[str, Any]],
    mode: str = "hybrid",
    isolate: bool = True,
) -> Answer:
    section = config["cluster"]
    codes: set[str] = set()
    try:
        check_keys(section, REQUIRED_KEYS, CLUSTER_KEYS)
    except Refused as refusal:
        codes.add(refusal.code)
    cluster = build_cluster(section, nodes, codes)
    written = [str(group.get("label")) for group in section.get("node_groups", [])]
    known = {"cluster", "node", *written}

    names: list[str] = []
    sizes: list[int] = []
    requests: list[Request] = []
    for key, value in section.get("component_placement", {}).items():
        for name in str(key).split(","):
            name = name.strip(" \t")
            if not NAME.fullmatch(name) or name in names:
                codes.add("name")
            names.append(name)
            try:
                request = read_component(name, value, known, cluster, codes, sizes)
                if request is not None:
                    requests.append(request)
            except Refused as refusal:
                codes.add(refusal.code)
    if sum(sizes) > MAX_PROCESSES:
        return Answer(codes=frozenset(codes | {"limit"}))
    if mode == "hybrid":
        return answer(mode, [], requests, isolate, codes)

    members = reference_model_parallel.find_members(names)
    of_role = {role: request for role, name in members.items() for request in requests if request.name == name}
    others = [request for request in requests if request not in of_role.values()]
    if not {"actor", "rollout", "reward"} <= members.keys():
        codes.add("schema")
    model_sizes = reference_model_parallel.Sizes(config, codes)
    word = ""
    placed: list[dict[str, Any]] = []
    if cluster is not None:
        word, placed = reference_model_parallel.place(
            config, model_sizes, set(members), of_role, cluster, isolate, codes
        )
    result = answer(word, placed, others, isolate, codes)
    # Output follows the config's order, whichever rule placed a component.
    result.components.sort(key=lambda component: names.index(component["name"]))
    return result


def build_cluster(section: dict[str, Any], nodes: list[dict[str, Any]], codes: set[str]) -> Cluster | None:
    """None when there is nothing to hold placements against; why not is in codes."""
    num_nodes = section.get("num_nodes")
    if isinstance(num_nodes, str) and num_nodes.isdecimal():
        num_nodes = int(num_nodes)
    if isinstance(num_nodes, bool) or not isinstance(num_nodes, int) or num_nodes < 1:
        codes.add("schema")
        return None
    if num_nodes > MAX_RANK:
        codes.add("limit")
        return None
    if num_nodes > len(nodes):
        codes.add("fit")
    sections = section.get("node_groups", [])
    groups, robots, group_codes = read_groups(sections, num_nodes)
    codes |= group_codes
    if num_nodes > len(nodes):
        return None
    return Cluster(order_nodes(nodes)[:num_nodes], groups, robots)


def read_component(
    name: str,
    value: Any,
    known: set[str],
    cluster: Cluster | None,
    codes: set[str],
    sizes: list[int],
) -> Request | None:
    """None when something is wrong, or its groups or the cluster are not there to judge by."""
    labels = ["cluster"]
    if isinstance(value, dict):
        is_known = value.keys() <= {"placement", "node_group"}
        if not is_known or "placement" not in value:
            codes.add("schema")
        group = value.get("node_group", "cluster")
        items = group if isinstance(group, list) else str(group).split(",")
        labels = [str(item).strip(" \t") for item in items]
    resources = find_resources(labels, known, cluster, codes)
    if isinstance(value, dict):
        if not is_known:
            resources = None  # the key may be meant for the groups
        if "placement" not in value:
            return None
        value = value["placement"]
    entries = parse_placement(value, codes)
    shares = number_entries(entries, None if resources is None else len(resources), codes)
    sizes += [len(share.processes) for share in shares if share is not None]
    if resources is None:
        return None
    is_good = check_deals(shares, resources, codes)
    right = [share for share in shares if share is not None]
    if not is_good or len(right) < len(shares) or not right:
        check_shares(shares, resources, codes)
        return None
    is_explicit = any(entry is not None and entry.processes is not None for entry in entries)
    return Request(name, labels, right, resources, is_explicit)


def find_resources(
    labels: list[str], known: set[str], cluster: Cluster | None, codes: set[str]
) -> list[Resource] | None:
    if not set(labels) <= known:
        codes.add("reference")
        return None
    if cluster is None or not set(labels) <= cluster.groups.keys():
        return None
    try:
        return cluster.resources(labels)
    except Refused as refusal:
        codes.add(refusal.code)
        return None


def answer(
    mode: str,
    placed: list[dict[str, Any]],
    requests: list[Request],
    isolate: bool,
    codes: set[str],
) -> Answer:
    """Place what is left as hybrid does, and choose between plan and refusal."""
    codes = set(codes)
    components = list(placed)
    for request in requests:
        component = place_hybrid(request, isolate, codes)
        if component is not None:
            components.append(component)
    if codes:
        return Answer(codes=frozenset(codes))
    return Answer(mode, components)
