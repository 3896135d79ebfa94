"""Cluster: nodes to plan against, and the engine that runs worker groups on them."""

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

from roost import _roost
from roost._plan.arguments import as_bool, as_count, as_int, as_path, as_text, check_seconds
from roost._plan.cluster import PlanningCluster, even_spec
from roost._plan.config import read_config
from roost._plan.errors import EngineError, warn
from roost._plan.nodes import NodeInfo
from roost._plan.view import section_of
from roost._work.allocate import check_node, group_settings, place_one, variable_text
from roost._work.engine import ENGINES, AllocateRequest, ClusterRequest, EngineLink, load_engine, open_managers
from roost._work.managers import newest_cluster, set_cluster


class OwnOrNewest:
    """A method of a Cluster that can be called on the class, too: then it is one of the newest cluster of this process."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, cluster: "Cluster | None", owner: type) -> Callable[..., Any]:
        if cluster is not None:
            return MethodType(self._function, cluster)

        @functools.wraps(self._function)
        def call_newest(*args: Any, **kwargs: Any) -> Any:
            newest = newest_cluster()
            if newest is None:
                raise EngineError("Cluster.allocate() needs a cluster: make one first, Cluster(num_nodes=...)")
            return self._function(newest, *args, **kwargs)

        return call_newest


class Cluster(PlanningCluster):
    """Nodes, accelerators and node groups to plan against.

    The nodes come from the first of these that applies: ``cluster`` (a spec such as ``"2x8"``, a snapshot
    file, or ``"local"``), ``num_nodes`` with ``num_gpus_per_node``, the environment's
    ``ROOST_CLUSTER``, ``roost.cluster`` of the config, this machine.

    ``cluster_cfg`` is the path of a config, a whole config with a ``cluster`` key, or that section
    (a dict, a DictConfig or a ClusterConfig). ``num_nodes=0`` takes all nodes there are.

    ``engine`` is ``"local"`` or ``"ray"``; without it the environment's ``ROOST_ENGINE`` counts, then ``roost.engine`` of
    the config, then local. On Ray the nodes are those of the Ray cluster, unless ``cluster`` describes others to plan
    against. On this machine a Cluster starts its managers, one small process, so that other processes find the run; workers
    start with the first WorkerGroup that is launched on it.

    ``distributed_log_dir`` is the folder for the output of the workers, ``timeout`` the seconds until they must be ready,
    and ``namespace`` the name by which other processes find the run and its managers. A process may have several clusters.

    With no arguments it is the cluster of a living run of this user: that of ``namespace``, of ``ROOST_NAMESPACE``, or the
    only one.

    Raises roost.Error for a config or arguments that are wrong, and EngineError where the engine cannot be used.

    >>> cluster = Cluster(cluster="2x8 A800")
    >>> cluster.num_nodes, cluster.num_accelerators
    (2, 16)
    >>> cluster.get_node_info(1).accelerator_model
    'A800'
    >>> Cluster(num_nodes=2, num_gpus_per_node=8).get_node_group("node").hardware_resource_count
    2
    """

    NAMESPACE = "roost"  # of runs on Ray; further ones at the same time have roost_1, roost_2, ...

    _engine = "local"  # its name
    _is_planned_only = False  # its engine has nodes of its own, but the caller described others
    _timeout = 600.0
    _request = ClusterRequest()
    _link: EngineLink | None = None
    _managers: Any = None  # of the engine, from the start

    def __init__(
        self,
        num_nodes: int | None = None,
        cluster_cfg: Any = None,
        distributed_log_dir: str | os.PathLike[str] | None = None,
        *,
        num_gpus_per_node: int | None = None,
        engine: str | None = None,
        cluster: str | os.PathLike[str] | None = None,
        namespace: str | None = None,
        timeout: float = 600,
    ) -> None:
        check_unused(distributed_log_dir, engine, namespace, timeout)
        self._timeout = float(timeout)
        logs_dir = None if distributed_log_dir is None else os.path.abspath(distributed_log_dir)
        if num_nodes is None and cluster_cfg is None and num_gpus_per_node is None and cluster is None:
            self._engine = engine_to_attach(engine)
            self._request = ClusterRequest(namespace, self._timeout, logs_dir)
            self._link = load_engine(self._engine).attach(self, self._request)
            set_cluster(self)
            return
        count = None if num_nodes is None else as_int("num_nodes", num_nodes)
        config = None if cluster_cfg is None else read_config("cluster_cfg", cluster_cfg)
        if config is not None and count == 0:
            raise _roost.Error("num_nodes=0 takes all nodes and is for clusters without a config")
        self._engine = choose_engine(engine, config)
        self._request = ClusterRequest(
            namespace, self._timeout, logs_dir, count, num_gpus_per_node, config, section_of(cluster_cfg)
        )
        if cluster is None and ENGINES[self._engine].has_own_nodes:
            self._link = load_engine(self._engine).begin(self, self._request)
            set_cluster(self)
            return
        self._is_planned_only = ENGINES[self._engine].has_own_nodes
        if num_gpus_per_node is not None and cluster is not None:
            raise TypeError("num_gpus_per_node and cluster say the same: pass one of them")
        value = _roost.Cluster(describe_nodes(cluster, self._request), config, count or 0)
        self._become(value, config, self._request.section)
        set_cluster(self)
        warn(value.warnings, 2)
        if not self._is_planned_only and not os.environ.get("ROOST_NAMESPACE"):  # else this process belongs to a run
            self._managers = open_managers(self._engine, self, namespace)

    @OwnOrNewest
    def allocate(
        self,
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
        """Starts one process of any class on a node and returns a handle of it, without waiting.

        ``cls`` need not derive from Worker; ``cls_args`` and ``cls_kwargs`` are the arguments of its constructor.
        ``worker_name`` is the name of the process, such as ``"reward"`` or ``"reward:1"``. ``node_id`` (or
        ``node_rank``) is the rank of the node, and ``gpu_id`` the accelerator of that node that the process uses.
        ``env_vars`` are its variables; they win over those of ``node_group_label`` and of roost. ``worker_rank`` is
        accepted and not used.

        ``handle.method(...)`` calls a method without waiting for it; ``wait()`` of what it returns gives the value. On Ray the
        handle is an actor's, too: ``handle.method.remote(...)`` returns Ray's own reference.
        ``Cluster.allocate(...)`` uses the newest cluster of this process.

        Raises roost.RankError for a node or an accelerator that does not exist, and EngineError when the engine cannot
        start the process.
        """
        if not isinstance(cls, type):
            raise TypeError(f"cls must be a class, not {cls!r}")
        if (node_id is None) == (node_rank is None):
            raise TypeError(
                "pass node_id, the number of the node"
                if node_id is None
                else "node_id and node_rank say the same: pass one of them"
            )
        node = as_int("node_id", node_id) if node_rank is None else as_int("node_rank", node_rank)
        _roost.check_address(as_text("worker_name", worker_name))
        accelerator = None if gpu_id is None else as_int("gpu_id", gpu_id)
        check_node(self, node, accelerator)
        env, interpreter = group_settings(self, node_group_label, node)
        request = AllocateRequest(
            cls=cls,
            args=tuple(cls_args),
            kwargs=dict(cls_kwargs or {}),
            name=worker_name,
            node_rank=node,
            gpu_id=accelerator,
            placements=place_one(self, node, accelerator),
            env=env | {name: variable_text(name, value) for name, value in (env_vars or {}).items()},
            interpreter=interpreter,
            max_concurrency=None if max_concurrency is None else as_count("max_concurrency", max_concurrency, 1),
            disable_distributed_log=as_bool("disable_distributed_log", disable_distributed_log),
        )
        return self._engine_link().allocate(request)

    @property
    def namespace(self) -> str:
        """The namespace of this cluster's managers. Asking for it starts them where they do not run yet."""
        return self._engine_link().namespace

    def get_node_info(self, node_rank: int) -> NodeInfo:
        """The node with this rank in the node order. Raises roost.RankError where there is none."""
        node = super().get_node_info(node_rank)
        if self._link is not None:
            self._link.complete(node)
        return node

    def _engine_link(self) -> EngineLink:
        """The engine that runs worker groups on this cluster, begun when it is first asked for."""
        if self._link is None and self._is_planned_only:
            raise EngineError(
                "this cluster was made from a spec or a snapshot, to plan against: leave cluster out to run on Ray's own nodes"
            )
        if self._link is None:
            self._link = load_engine(self._engine).begin(self, self._request)
        return self._link

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a Cluster: make it again where it is needed, with the same arguments")


def describe_nodes(cluster: str | os.PathLike[str] | None, request: ClusterRequest) -> bytes | None:
    """The text that describes the nodes: a spec, a path or 'local'. None = the config has one."""
    config = request.config
    if cluster is not None:
        return as_path("cluster", cluster, "a spec, a path or 'local'")
    if request.num_gpus_per_node is not None:
        if request.num_nodes is None and config is None:
            raise TypeError(
                "num_gpus_per_node says nothing of how many nodes there are: pass num_nodes or cluster_cfg too"
            )
        return even_spec(
            "num_nodes",
            config.num_nodes if request.num_nodes is None and config else request.num_nodes,
            request.num_gpus_per_node,
        )
    text = os.fsencode(os.environ.get("ROOST_CLUSTER", ""))
    return text or (None if config and config.cluster else b"local")


def choose_engine(asked: str | None, config: _roost.Config | None) -> str:
    """The argument, ROOST_ENGINE, the config's, else local."""
    chosen = _roost.choose_engine(asked, os.environ.get("ROOST_ENGINE"), config)
    if chosen not in _roost.engines:
        raise EngineError(f"ROOST_ENGINE is {chosen!r}: the engines are {' and '.join(_roost.engines)}")
    return chosen


def engine_to_attach(asked: str | None) -> str:
    """The engine where Cluster() looks for its run: the one asked for, or Ray in a process that has joined Ray."""
    ray = sys.modules.get("ray")
    if not asked and not os.environ.get("ROOST_ENGINE") and ray is not None and ray.is_initialized():
        return "ray"
    return choose_engine(asked, None)


def check_unused(distributed_log_dir: Any, engine: Any, namespace: Any, timeout: Any) -> None:
    """Checks arguments that planning does not use, too: the same script may run elsewhere later."""
    if distributed_log_dir is not None:
        as_path("distributed_log_dir", distributed_log_dir)
    if engine is not None and as_text("engine", engine) not in _roost.engines:
        raise EngineError(f"engine {engine!r} is not there: the engines are {' and '.join(_roost.engines)}")
    if namespace is not None:
        as_text("namespace", namespace)
    check_seconds("timeout", timeout)
