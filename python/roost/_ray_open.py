"""Runs on Ray: begun by a driver, found by whoever attaches."""

import atexit
import os
from collections.abc import Callable, Collection
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._attach import cluster_of
from roost._errors import EngineError
from roost._managers import set_transport
from roost._ray import MANAGER_SECONDS, RayEngine
from roost._ray_cluster import again, alive_nodes, connect, find_address, inside_ray, is_taken, leave, load_ray, namespaces_with, next_namespace, plain_errors, refuse_initialised, rejoin, running_namespaces, wait_for_nodes, warn_open
from roost._ray_fork import check_joined, note_join
from roost._ray_ledger import sweep, trace_of
from roost._ray_managers import NAMES
from roost._ray_nodes import answer_seconds, build_cluster, check_interpreters, interpreters_of, name_local_node, not_there, probe_nodes, snapshot
from roost._ray_transport import RayTransport

NAMESPACE_TRIES = 100  # other runs may begin meanwhile, one after the other

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


def open_cluster(config: _roost.Config | None, section: Any, num_nodes: int | None, namespace: str | None, timeout: float, warn: Callable[[Any], None], run_id: str | None = None, address: str | None = None, planned: dict[str, Any] | None = None) -> RayEngine:
    """Joins or starts Ray, waits for the nodes, and starts the managers of a new run. A process has one run on Ray: the
    same wish again is answered by the same run. `address` stands in for that of a config. `planned` is the view of a cluster
    that was planned for: its nodes, in their order, and its config are the run's."""
    check_joined()
    made_with = (num_nodes, config and (config.text, config.paths), namespace)
    if (running := running_engine()) is not None:
        return same_run(running, made_with)
    check_wish(config, num_nodes or 0)
    module = load_ray()
    refuse_initialised(module)
    found = find_address(config.ray_address if config else address)
    ray = connect(module, found, namespace or next_namespace(set()))
    try:
        if planned is not None and found is None:
            (own,) = alive_nodes(ray)
            name_local_node(planned["nodes"], own["NodeID"])
        engine = keep(begin(ray, config, section, num_nodes, namespace, timeout, warn, run_id, planned))
        engine.made_with = made_with
        return engine
    except BaseException:
        leave(ray)
        raise


def check_wish(config: _roost.Config | None, num_nodes: int) -> None:
    """A wish that contradicts itself is refused before anybody is waited for. Whether it does, the C library says first, of
    any nodes; what else it says of these is nobody's concern."""
    try:
        _roost.Cluster(b"1x0", config, num_nodes)
    except _roost.Error as error:
        if error.code == "usage":
            raise


def same_run(engine: RayEngine, made_with: Any) -> RayEngine:
    if engine.made_with != made_with:
        raise fault(
            EngineError, f"this process has a run on Ray already, in namespace '{engine.namespace}', for a Cluster with other arguments",
            hint="use that Cluster, or Cluster() which finds it; another one needs a process of its own",
        )  # fmt: skip
    return engine


def begin(
    ray: Any, config: _roost.Config | None, section: Any, num_nodes: int | None, namespace: str | None, timeout: float, warn: Callable[[Any], None], run_id: str | None,
    planned: dict[str, Any] | None = None,
) -> RayEngine:  # fmt: skip
    warn_open(ray)
    sweep()
    gcs = ray.get_runtime_context().gcs_address
    wanted = (num_nodes or 0) if config is None else config.num_nodes
    nodes = wait_for_nodes(ray, max(1, wanted), timeout, gcs)
    if planned is not None:  # what others have is nobody's concern
        ids = {node.get("id") for node in planned["nodes"]}
        nodes = [node for node in nodes if node["NodeID"] in ids]
    answers = probe_nodes(ray, nodes, answer_seconds(timeout), sorted({path for _, _, path in interpreters_of(config)}))
    facts = {node["NodeID"]: answer for node, answer in zip(nodes, answers, strict=True)}
    if planned is None:
        value = build_cluster(snapshot(nodes, answers), config, num_nodes or 0)
        warn(value.warnings)
        check_interpreters(config, value, facts)
    else:
        value, config, section = planned_cluster(planned, facts)
    interpreters = {node: answer["python"] for node, answer in facts.items()}
    run_id = run_id or _roost.new_run_id()
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
                raise fault(EngineError, f"namespace '{chosen}' is another run's on this Ray cluster", hint="choose another one, or leave namespace out" if namespace else "begin again", code="name") from error
    return engine


def planned_cluster(planned: dict[str, Any], facts: Collection[str]) -> tuple[_roost.Cluster, _roost.Config | None, Any]:
    for node in planned["nodes"]:
        if node.get("id") not in facts:
            raise not_there(node["node_rank"], node.get("id"))
    cluster = cluster_of(planned)
    return cluster._value, cluster._config, cluster._section


def choose_namespace(ray: Any) -> str:
    return next_namespace(namespaces_with(ray, NAMES))


def attach(namespace: str | None) -> RayEngine:
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
        raise fault(EngineError, f"{len(found)} runs are on this Ray cluster: {', '.join(found) or 'none'}", hint="name one by ROOST_NAMESPACE or namespace=" if found else "begin one with Cluster(num_nodes=...) first")
    chosen = wanted or found[0]
    with plain_errors("of this run"):
        try:
            manager = ray.get_actor("NodeManager", namespace=chosen)
        except ValueError as error:
            raise fault(EngineError, f"there is no run in namespace '{chosen}' on this Ray cluster", hint=f"runs are in: {', '.join(found) or 'none'}", code="name") from error
        described = ray.get(again(manager.describe).remote(), timeout=MANAGER_SECONDS)
    found_cluster = cluster_of(described["view"])
    engine = RayEngine(ray, chosen, described["run_id"], found_cluster._value, found_cluster._config, False)
    engine.master_port, engine.interpreters = described["master_port"], described["interpreters"]
    engine.find_managers()
    return engine
