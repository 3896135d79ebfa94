"""Cluster.allocate(): one process of any class on a node, by hand."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roost import _roost
from roost._arguments import as_bool, as_count, as_int, as_text
from roost._config import node_group_configs
from roost._errors import EngineError

if TYPE_CHECKING:
    from roost._cluster import Cluster


def allocate(
    cluster: "Cluster | None",
    cls: type,
    worker_name: str,
    node_id: int | None = None,
    gpu_id: int | None = None,
    env_vars: Mapping[str, Any] | None = None,
    cls_args: Sequence[Any] = (),
    cls_kwargs: Mapping[str, Any] | None = None,
    *,
    node_rank: int | None = None,
    worker_rank: int | None = None,
    max_concurrency: int | None = None,
    node_group_label: str | None = None,
    disable_distributed_log: bool = False,
) -> Any:
    """Starts a process of `cls` on a node under a name of its own and returns a handle of it, without waiting.

    `node_id` (or `node_rank`) is the node's place in the node order, `gpu_id` an accelerator of it that the process
    uses. `env_vars` is its environment, over what `node_group_label` and roost itself give. The handle is what the
    engine has: an actor on Ray, on this machine an object with the same `handle.method.remote(...)`.
    """
    if cluster is None:
        raise EngineError("Cluster.allocate() needs a cluster: make one first, Cluster(num_nodes=...)")
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, not {cls!r}")
    if (node_id is None) == (node_rank is None):
        raise TypeError("pass node_id, the number of the node" if node_id is None else "node_id and node_rank say the same: pass one of them")
    node = as_int("node_id", node_id) if node_rank is None else as_int("node_rank", node_rank)
    _roost.check_address(as_text("worker_name", worker_name))
    check_node(cluster, node, None if gpu_id is None else as_int("gpu_id", gpu_id))
    variables, interpreter = group_settings(cluster, node_group_label, node)
    variables |= {name: variable_text(name, value) for name, value in (env_vars or {}).items()}
    return cluster._engine_link().allocate(
        cls, worker_name, node, None if gpu_id is None else as_int("gpu_id", gpu_id), variables, interpreter,
        None if max_concurrency is None else as_count("max_concurrency", max_concurrency, 1), tuple(cls_args), dict(cls_kwargs or {}), as_bool("disable_distributed_log", disable_distributed_log),
    )  # fmt: skip


def place_one(cluster: "Cluster", node_rank: int, gpu_id: int | None) -> _roost.Placements:
    """A process on that node, with that accelerator of it."""
    from roost._strategy import FlexiblePlacementStrategy, NodePlacementStrategy

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


def check_node(cluster: "Cluster", node: int, accelerator: int | None) -> None:
    if not 0 <= node < cluster.num_nodes:
        raise _roost.RankError(f"node_id {node} is out of range: there {'are' if cluster.num_nodes > 1 else 'is'} {count_of(cluster.num_nodes, 'node')}")
    info = cluster.get_node_info(node)
    if accelerator is not None and not 0 <= accelerator < info.num_accelerators:
        where = f"node {node} ({info.node_ip})" if info.node_ip else f"node {node}"
        raise _roost.RankError(f"gpu_id {accelerator} is out of range: {where} has {count_of(info.num_accelerators, 'accelerator')}")


def count_of(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def group_settings(cluster: "Cluster", label: str | None, node_rank: int) -> tuple[dict[str, str], str | None]:
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
