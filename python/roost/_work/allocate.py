"""What Cluster.allocate() needs: where its one process goes, and the variables that the process gets."""

from typing import Any

from roost import _roost
from roost._plan.arguments import as_text
from roost._plan.cluster import PlanningCluster
from roost._plan.config import node_group_configs
from roost._plan.strategy import FlexiblePlacementStrategy, NodePlacementStrategy


def place_one(cluster: PlanningCluster, node_rank: int, gpu_id: int | None) -> _roost.Placements:
    """A process on that node, with that accelerator of it."""
    before = sum(cluster._value.node(rank)["num_accelerators"] for rank in range(node_rank))
    strategy = NodePlacementStrategy([node_rank]) if gpu_id is None else FlexiblePlacementStrategy([[before + gpu_id]])
    return strategy.get_placement(cluster)


def variable_text(name: str, value: Any) -> str:
    _roost.check_variable(as_text("a name in env_vars", name))
    if value is None:
        raise TypeError(f"env_vars: {name} must be a text or a number, not None")
    return str(value)


def is_settable(name: str) -> bool:
    """False for a variable of roost's own; the config was warned that its value is not used."""
    try:
        _roost.check_variable(name)
    except _roost.Error:
        return False
    return True


def check_node(cluster: PlanningCluster, node: int, accelerator: int | None) -> None:
    if not 0 <= node < cluster.num_nodes:
        raise _roost.RankError(
            f"node_id {node} is out of range: there {'are' if cluster.num_nodes > 1 else 'is'} {count_of(cluster.num_nodes, 'node')}"
        )
    info = cluster.get_node_info(node)
    if accelerator is not None and not 0 <= accelerator < info.num_accelerators:
        where = f"node {node} ({info.node_ip})" if info.node_ip else f"node {node}"
        raise _roost.RankError(
            f"gpu_id {accelerator} is out of range: {where} has {count_of(info.num_accelerators, 'accelerator')}"
        )


def count_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def group_settings(cluster: PlanningCluster, label: str | None, node_rank: int) -> tuple[dict[str, str], str | None]:
    """Variables and interpreter that a node group's env_configs have for a node."""
    if label is None:
        return {}, None
    if label not in (group[0] for group in cluster._value.groups):
        raise _roost.Error(f"there is no node group '{label}'")
    for group in node_group_configs(cluster._config) if cluster._config else []:
        for env in group.env_configs or [] if group.label == label else []:
            if node_rank in env.node_ranks:
                given = env.get_env_vars()
                return {name: value for name, value in given.items() if is_settable(name)}, env.python_interpreter_path
    return {}, None
