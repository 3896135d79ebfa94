"""Who sits where: shares of resources become processes with eleven fields.

Written from RLinf's behaviour and where roost differs from it on purpose, not from the C.
"""

from dataclasses import dataclass
from typing import Any

from reference_cluster import ACCELERATOR, Resource
from reference_ranks import Refused, Share


@dataclass(frozen=True)
class Request:
    """One component's wish, held against the cluster: shares of a list of resources."""

    name: str
    labels: list[str]
    shares: list[Share]
    resources: list[Resource]
    has_explicit_processes: bool

    @property
    def hardware_ranks(self) -> list[int]:
        return [rank for share in self.shares for rank in share.resources]


def deal(share: Share, resources: list[Resource]) -> list[list[Resource]]:
    """What each process of the share holds."""
    units = [resources[rank] for rank in share.resources]
    deal_out = deal_nodes if units[0].kind is None else deal_units
    return deal_out(units, len(share.processes))


def check_deals(shares: list[Share | None], resources: list[Resource], codes: set[str]) -> bool:
    """Whether the counts of every share divide."""
    is_good = True
    for i, share in enumerate(shares):
        try:
            if share is not None:
                deal(share, resources)
        except Refused as refusal:
            codes.add(refusal.code)
            shares[i] = None
            is_good = False
    return is_good


def check_shares(shares: list[Share | None], resources: list[Resource], codes: set[str]) -> None:
    """The first fault of every share: its other processes mostly have the same."""
    for share in shares:
        try:
            if share is not None:
                check_processes(deal(share, resources))
        except Refused as refusal:
            codes.add(refusal.code)


def place_hybrid(request: Request, isolate: bool, codes: set[str]) -> dict[str, Any] | None:
    faults: set[str] = set()
    check_shares(list(request.shares), request.resources, faults)
    codes |= faults
    if faults:
        return None
    held = [units for share in request.shares for units in deal(share, request.resources)]
    strategy = "node" if request.resources[0].kind is None else "flexible"
    return describe(request.name, strategy, request.labels, request.hardware_ranks, held, isolate)


def deal_units(units: list[Resource], processes: int) -> list[list[Resource]]:
    """Whole multiples only: k units to a process, or k processes to a unit."""
    if len(units) % processes == 0:
        k = len(units) // processes
        return [units[i * k : (i + 1) * k] for i in range(processes)]
    if processes % len(units) == 0:
        k = processes // len(units)
        return [[unit] for unit in units for _ in range(k)]
    raise Refused("rank")


def deal_nodes(nodes: list[Resource], processes: int) -> list[list[Resource]]:
    """As even as possible, the first nodes take what is over; no process on two nodes."""
    if processes < len(nodes):
        raise Refused("rank")
    even, over = divmod(processes, len(nodes))
    return [[node] for i, node in enumerate(nodes) for _ in range(even + (i < over))]


def check_process(units: list[Resource]) -> None:
    if len({unit.node.rank for unit in units}) > 1:
        raise Refused("fit")
    if len({(unit.kind, unit.local) for unit in units}) < len(units):
        raise Refused("rank")
    if len({unit.kind for unit in units}) > 1:
        raise Refused("hardware")


def check_processes(held: list[list[Resource]]) -> None:
    for units in held:
        check_process(units)


def describe(
    name: str,
    strategy: str,
    labels: list[str],
    hardware_ranks: list[int],
    held: list[list[Resource]],
    isolate: bool,
) -> dict[str, Any]:
    """The component as `plan --json` prints it; held[r] is what process r holds."""
    check_processes(held)
    nodes = [units[0].node for units in held]
    on_node: dict[int, int] = {}  # node rank -> processes there; keys in order of appearance
    local_ranks = []
    for node in nodes:
        local_ranks.append(on_node.get(node.rank, 0))
        on_node[node.rank] = local_ranks[-1] + 1
    node_order = list(on_node)

    processes = []
    for rank, (units, node) in enumerate(zip(held, nodes, strict=True)):
        own = [] if units[0].kind is None else [unit.local for unit in units]
        visible = list(range(node.accelerators))
        first_accelerator = 0 if visible else -1
        if units[0].kind == ACCELERATOR:
            first_accelerator = own[0]
            if isolate:
                visible = own
        processes.append(
            {
                "rank": rank,
                "cluster_node_rank": node.rank,
                "placement_node_rank": node_order.index(node.rank),
                "local_accelerator_rank": first_accelerator,
                "accelerator_type": node.accelerator_type,
                "local_rank": local_ranks[rank],
                "local_world_size": on_node[node.rank],
                "visible_accelerators": [str(local) for local in visible],
                "isolate_accelerator": isolate,
                "local_hardware_ranks": own,
                "node_group_label": units[0].label,
            }
        )
    return {
        "name": name,
        "strategy": strategy,
        "world_size": len(processes),
        "node_groups": labels,
        "hardware_ranks": hardware_ranks,
        "local_rank_rule": "rlinf",
        "processes": processes,
    }
