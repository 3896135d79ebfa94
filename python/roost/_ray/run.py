"""Begins a run on Ray, or attaches to one. This is the module that a Cluster loads for the engine "ray"."""

import atexit
import logging
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from roost import _roost
from roost._plan.arguments import as_count
from roost._plan.cluster import PlanningCluster
from roost._plan.errors import EngineError, fault, warn
from roost._plan.view import cluster_of
from roost._ray.engine import MANAGER_SECONDS, RayEngine
from roost._ray.join import (
    again,
    alive_nodes,
    connect,
    find_address,
    inside_ray,
    is_taken,
    leave,
    load_ray,
    namespaces_with,
    next_namespace,
    plain_errors,
    refuse_initialised,
    rejoin,
    running_namespaces,
    wait_for_nodes,
    warn_open,
)
from roost._ray.journal import sweep, trace_of
from roost._ray.managers import NAMES
from roost._ray.nodes import (
    answer_seconds,
    build_cluster,
    check_interpreters,
    interpreters_of,
    name_local_node,
    not_there,
    probe_nodes,
    snapshot,
)
from roost._ray.session import check_joined, note_join
from roost._ray.transport import RayTransport
from roost._work.engine import ClusterRequest
from roost._work.managers import set_transport

log = logging.getLogger("roost")

NAMESPACE_TRIES = 100  # other runs may take a name first, one after the other

current: RayEngine | None = None


def keep(engine: RayEngine) -> RayEngine:
    global current
    current = engine
    note_join()
    engine.trace = trace_of(engine._ray)
    set_transport(RayTransport(engine._ray, engine.namespace, dict(engine._managers)))
    atexit.register(engine.close)
    return engine


def running_engine() -> RayEngine | None:
    """The run of this process. One whose Ray the program has shut down is over, and closed here."""
    if current is not None and not current._ray.is_joined:
        current.close()
    return None if current is None or current._is_closed else current


def begin(cluster: PlanningCluster, request: ClusterRequest) -> RayEngine:
    """Begins a run, or finds that of this process. The nodes of the Ray cluster become those of `cluster`."""
    engine = open_run(request, lambda warnings: warn(warnings, 6))
    cluster._become(engine.value, engine.config, None)
    if request.num_gpus_per_node is not None:
        warn_of_counts(engine.value, as_count("num_gpus_per_node", request.num_gpus_per_node))
    if request.logs_dir is not None:
        engine.keep_logs(request.logs_dir)
    return engine


def attach(cluster: PlanningCluster, request: ClusterRequest) -> RayEngine:
    """Finds a run that another process began. Its nodes become those of `cluster`."""
    engine = find_engine(request.namespace)
    cluster._become(engine.value, engine.config, None)
    return engine


def warn_of_counts(value: _roost.Cluster, wanted: int) -> None:
    """On Ray the nodes are what they are, whatever was expected of them."""
    for rank in range(value.num_nodes):
        found = value.node(rank)["num_accelerators"]
        if found != wanted:
            log.warning(
                "num_gpus_per_node is %d, but node %d has %d accelerators: on Ray the nodes tell, leave it out",
                wanted,
                rank,
                found,
            )
            return


@dataclass(frozen=True)
class Planned:
    """What `roost run` has settled before its bridge begins the run."""

    run_id: str
    address: str | None  # stands in for that of a config
    view: dict[str, Any] | None  # of the cluster that was planned for: its nodes and its config are the run's


def open_run(request: ClusterRequest, warn: Callable[[Any], None], planned: Planned | None = None) -> RayEngine:
    """Joins or starts Ray, waits for the nodes, and starts the managers of a new run. A process has one run on Ray: the
    same request again is answered by the same run."""
    check_joined()
    config = request.config
    made_with = (request.num_nodes, config and (config.text, config.paths), request.namespace)
    if (running := running_engine()) is not None:
        return same_run(running, made_with)
    check_wish(config, request.num_nodes or 0)
    module = load_ray()
    refuse_initialised(module)
    found = find_address(config.ray_address if config else planned.address if planned else None)
    ray = connect(module, found, request.namespace or next_namespace(set()))
    try:
        if planned is not None and planned.view is not None and found is None:
            (own,) = alive_nodes(ray)
            name_local_node(planned.view["nodes"], own["NodeID"])
        engine = keep(start_run(ray, request, warn, planned))
        engine.made_with = made_with
        return engine
    except BaseException:
        leave(ray)
        raise


def check_wish(config: _roost.Config | None, num_nodes: int) -> None:
    """Refuses arguments that contradict each other before waiting for any node. The C library checks that first, whatever the
    nodes are; its other errors do not matter here."""
    try:
        _roost.Cluster(b"1x0", config, num_nodes)
    except _roost.Error as error:
        if error.code == "usage":
            raise


def same_run(engine: RayEngine, made_with: Any) -> RayEngine:
    if engine.made_with != made_with:
        raise fault(
            EngineError,
            f"this process has a run on Ray already, in namespace '{engine.namespace}', for a Cluster with other arguments",
            hint="use that Cluster, or Cluster() which finds it; another one needs a process of its own",
        )
    return engine


def start_run(
    ray: Any, request: ClusterRequest, warn: Callable[[Any], None], planned: Planned | None = None
) -> RayEngine:
    config, section, num_nodes, namespace, timeout = (
        request.config,
        request.section,
        request.num_nodes,
        request.namespace,
        request.timeout,
    )
    view = planned.view if planned else None
    warn_open(ray)
    sweep()
    gcs = ray.get_runtime_context().gcs_address
    wanted = (num_nodes or 0) if config is None else config.num_nodes
    nodes = wait_for_nodes(ray, max(1, wanted), timeout, gcs)
    if view is not None:  # other nodes do not matter
        ids = {node.get("id") for node in view["nodes"]}
        nodes = [node for node in nodes if node["NodeID"] in ids]
    answers = probe_nodes(ray, nodes, answer_seconds(timeout), sorted({path for _, _, path in interpreters_of(config)}))
    facts = {node["NodeID"]: answer for node, answer in zip(nodes, answers, strict=True)}
    if view is None:
        value = build_cluster(snapshot(nodes, answers), config, num_nodes or 0)
        warn(value.warnings)
        check_interpreters(config, value, facts)
    else:
        value, config, section = planned_cluster(view, facts)
    interpreters = {node: answer["python"] for node, answer in facts.items()}
    run_id = planned.run_id if planned else _roost.new_run_id()
    for tries_left in reversed(range(NAMESPACE_TRIES)):
        chosen = namespace or choose_namespace(ray)
        if chosen != ray.get_runtime_context().namespace:
            rejoin(ray, gcs, chosen)
        engine = RayEngine(ray, chosen, run_id, value, config, True)
        try:
            engine.interpreters = interpreters
            engine.keep_facts(facts)
            engine.start_managers(section)
            break
        except Exception as error:
            if not is_taken(ray, error):
                raise
            if namespace or not tries_left:
                raise fault(
                    EngineError,
                    f"namespace '{chosen}' is another run's on this Ray cluster",
                    hint="choose another one, or leave namespace out" if namespace else "begin again",
                    code="name",
                ) from error
    return engine


def planned_cluster(
    planned: dict[str, Any], facts: Collection[str]
) -> tuple[_roost.Cluster, _roost.Config | None, Any]:
    for node in planned["nodes"]:
        if node.get("id") not in facts:
            raise not_there(node["node_rank"], node.get("id"))
    cluster = cluster_of(planned)
    return cluster._value, cluster._config, cluster._section


def choose_namespace(ray: Any) -> str:
    return next_namespace(namespaces_with(ray, NAMES))


def find_engine(namespace: str | None) -> RayEngine:
    """The run that another process began: in `namespace`, ROOST_NAMESPACE, or the only one."""
    check_joined()
    if (running := running_engine()) is not None:
        return running
    wanted = namespace or os.environ.get("ROOST_NAMESPACE")
    ray = inside_ray()
    if ray is not None:
        return keep(find_run(ray, wanted))
    module = load_ray()
    address = find_address(None, None)
    if address is None:
        raise fault(EngineError, "there is no Ray cluster to attach to", hint="set RAY_ADDRESS to it")
    ray = connect(module, address, wanted or "roost")
    try:
        return keep(find_run(ray, wanted))
    except BaseException:
        leave(ray)  # what was not found can still be begun
        raise


def find_run(ray: Any, wanted: str | None) -> RayEngine:
    found = sorted(running_namespaces(ray))
    if wanted is None and len(found) != 1:
        raise fault(
            EngineError,
            f"{len(found)} runs are on this Ray cluster: {', '.join(found) or 'none'}",
            hint="name one by ROOST_NAMESPACE or namespace="
            if found
            else "begin one with Cluster(num_nodes=...) first",
        )
    chosen = wanted or found[0]
    with plain_errors("of this run"):
        try:
            manager = ray.get_actor("NodeManager", namespace=chosen)
        except ValueError as error:
            raise fault(
                EngineError,
                f"there is no run in namespace '{chosen}' on this Ray cluster",
                hint=f"runs are in: {', '.join(found) or 'none'}",
                code="name",
            ) from error
        described = ray.get(again(manager.describe).remote(), timeout=MANAGER_SECONDS)
    found_cluster = cluster_of(described["view"])
    engine = RayEngine(ray, chosen, described["run_id"], found_cluster._value, found_cluster._config, False)
    engine.master_port, engine.interpreters = described["master_port"], described["interpreters"]
    engine.find_managers()
    return engine
