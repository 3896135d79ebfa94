"""Cluster.allocate(): one actor of any class on a node, by hand."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roost import _roost
from roost._arguments import as_count, as_int, as_text
from roost._config import node_group_configs
from roost._errors import EngineError

if TYPE_CHECKING:
    from roost._ray import RayEngine


def allocate(
    engine: "RayEngine | None",
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
    """Starts a named Ray actor of `cls` on a node and returns its handle, without waiting.

    `node_id` (or `node_rank`) is the node's place in the node order, `gpu_id` an accelerator of it that the actor
    uses, which is reserved for the run. `env_vars` is the actor's environment, over what `node_group_label` gives.
    """
    engine = engine or running_engine()
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a class, not {cls!r}")
    if (node_id is None) == (node_rank is None):
        raise TypeError("pass node_id, the number of the node" if node_id is None else "node_id and node_rank say the same: pass one of them")
    node = as_int("node_id", node_id) if node_rank is None else as_int("node_rank", node_rank)
    variables, interpreter = group_settings(engine, node_group_label, node)
    variables |= {as_text("a name in env_vars", name): str(value) for name, value in (env_vars or {}).items()}
    return engine.allocate(
        cls, as_text("worker_name", worker_name), node, None if gpu_id is None else as_int("gpu_id", gpu_id), variables, interpreter,
        None if max_concurrency is None else as_count("max_concurrency", max_concurrency, 1), tuple(cls_args), dict(cls_kwargs or {}),
    )  # fmt: skip


def running_engine() -> "RayEngine":
    from roost import _ray

    if _ray.current is None:
        raise EngineError("Cluster.allocate() starts actors on Ray: make a Cluster(engine='ray') first")
    return _ray.current


def group_settings(engine: "RayEngine", label: str | None, node_rank: int) -> tuple[dict[str, str], str | None]:
    """Variables and interpreter that a node group's env_configs have for a node."""
    if label is None:
        return {}, None
    if label not in (group[0] for group in engine.value.groups):
        raise _roost.Error(f"there is no node group '{label}'")
    for group in node_group_configs(engine.config) if engine.config else []:
        for env in group.env_configs or [] if group.label == label else []:
            if node_rank in env.node_ranks:
                return env.get_env_vars(), env.python_interpreter_path
    return {}, None
