"""Placement groups of roost.slime on Ray: one group of bundles with one GPU and one CPU each, and where the bundles are.

Ray tells which node has a bundle, but not which GPU: only a process inside the bundle sees that. So one task per bundle looks.
The tasks of a node follow one another and share one process there, which costs a fraction of one actor per bundle."""

import contextlib
import math
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from roost import _roost
from roost._plan.cluster import PlanningCluster
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.engine import RayEngine
from roost._ray.join import SAY_EVERY, alive_nodes, connect, find_address, inside_ray, load_ray, state, told
from roost._ray.nodes import PROBE_TRIES
from roost._ray.reserve import group_state, remove_group
from roost._ray.session import Session, check_joined, note_join
from roost._ray.trainers import Place, RayTrainers
from roost._work.bundles import Bundle, ReserveRequest, TrainerRequest
from roost._work.cluster import Cluster

NAMESPACE = "roost_groups"  # of a program that joins Ray here; nothing is named in it
PLACE_SECONDS = 10.0  # for Ray to place a group whose resources are free
REMOVE_SECONDS = 30.0
NAMED_NODES = 8  # in a message
GONE = "make the placement groups again with create_placement_groups()"

joined: Session | None = None  # by this module


def join() -> Session:
    """The Ray that the program has joined, else the one that RAY_ADDRESS or this machine has."""
    global joined
    check_joined()
    if (found := inside_ray()) is not None:
        return joined if joined is not None and joined.is_joined else found
    joined = connect(load_ray(), find_address(None), NAMESPACE)
    note_join()
    return joined


def session_of(cluster: PlanningCluster | None) -> Session:
    if cluster is None:
        return join()
    link = cluster._engine_link() if isinstance(cluster, Cluster) else None
    assert isinstance(link, RayEngine)
    session: Session = link._ray
    session.check()
    return session


# --- reserving


def reserve(cluster: PlanningCluster | None, request: ReserveRequest) -> "RayReservation":
    ray = session_of(cluster)
    if request.timeout <= 0 and (lacking := Needs(request).lacking(free_of_nodes(ray))):
        raise refusal(ray, request, lacking, 0.0)
    found = RayReservation(ray, request_group(request.num_bundles))
    try:
        wait_placed(ray, found, request)
    except BaseException:
        found.remove()
        raise
    return found


def request_group(count: int) -> Any:
    """Asks for a group without waiting. It ends with this process; an autoscaler sees what is asked for."""
    from ray.util.placement_group import placement_group

    return placement_group([{"GPU": 1, "CPU": 1}] * count, strategy="PACK", name=f"roost-groups-{secrets.token_hex(4)}")


class Needs:
    """What has to be free."""

    def __init__(self, request: ReserveRequest) -> None:
        self.bundles = request.num_bundles
        self.beside = math.ceil(round(request.num_cpus - request.num_bundles, 4))  # CPUs outside the group

    def lacking(self, free: Mapping[str, Mapping[str, float]]) -> str:
        """What is missing before the group exists; "" = nothing."""
        bundles = sum(int(min(node.get("GPU", 0), node.get("CPU", 0))) for node in free.values())
        if bundles < self.bundles:
            return f"{bundles} of {self.bundles} bundles of 1 GPU and 1 CPU are free"
        return self.lacking_beside(free, self.bundles)

    def lacking_beside(self, free: Mapping[str, Mapping[str, float]], taken: int = 0) -> str:
        """What is missing for the processes outside the group."""
        cpus = sum(int(node.get("CPU", 0)) for node in free.values()) - taken
        if cpus < self.beside:
            return f"{max(cpus, 0)} of {self.beside} CPUs are free for the rollout manager and its lock"
        return ""


def free_of_nodes(ray: Session) -> dict[str, Mapping[str, float]]:
    """What each living node has left, by Ray's id. A node is left out while Ray does not know."""
    ray.check()
    free: Mapping[str, Mapping[str, float]] = state().available_resources_per_node()
    return {node["NodeID"]: free[node["NodeID"]] for node in alive_nodes(ray) if node["NodeID"] in free}


def wait_placed(ray: Session, found: "RayReservation", request: ReserveRequest) -> None:
    """Waits until Ray has placed the group, and has CPUs left for what runs beside it."""
    start = said = time.monotonic()
    timeout = max(request.timeout, PLACE_SECONDS) if request.timeout <= 0 else request.timeout
    needs, is_placed = Needs(request), False
    while True:
        is_placed = is_placed or found.is_placed()
        free = free_of_nodes(ray)
        lacking = "Ray has not placed the group" if not is_placed else found.lacking_beside(needs, free)
        if not lacking:
            return
        now = time.monotonic()
        if now - start >= timeout:
            raise refusal(ray, request, lacking, request.timeout)
        if now - said >= SAY_EVERY:
            said = now
            request.say(f"waiting for {counts(ray, request, lacking)}; {start + timeout - now:.0f} seconds are left")
        if is_placed:
            time.sleep(0.1)  # Ray tells nobody of what gets free


def refusal(ray: Session, request: ReserveRequest, lacking: str, after: float) -> Timeout:
    return fault(
        Timeout,
        f"no placement group after {after:g} seconds: {counts(ray, request, lacking)}",
        hint="end what uses them (`ray status`), add nodes, or ask for less; nothing is reserved",
    )


def counts(ray: Session, request: ReserveRequest, lacking: str) -> str:
    """What is asked for, registered and free, and on which nodes."""
    free, nodes = free_of_nodes(ray), sorted(alive_nodes(ray), key=lambda node: str(node["NodeManagerAddress"]))
    total = {kind: sum(node["Resources"].get(kind, 0) for node in nodes) for kind in ("GPU", "CPU")}
    left = {kind: sum(node.get(kind, 0) for node in free.values()) for kind in ("GPU", "CPU")}
    lines = [free_words(node, free[node["NodeID"]]) for node in nodes if node["NodeID"] in free]
    more = f" and {len(lines) - NAMED_NODES} nodes more" if len(lines) > NAMED_NODES else ""
    return (
        f"{request.num_bundles} GPU and {request.num_cpus:g} CPU: {lacking}; "
        f"registered {total['GPU']:g} GPU and {total['CPU']:g} CPU, free {left['GPU']:g} GPU and {left['CPU']:g} CPU "
        f"(free by node: {', '.join(lines[:NAMED_NODES]) or 'none'}{more})"
    )


def free_words(node: Mapping[str, Any], free: Mapping[str, float]) -> str:
    """What a node has left."""
    kinds = [f"{free.get(kind, 0):g} of {node['Resources'].get(kind, 0):g} {kind}" for kind in ("GPU", "CPU")]
    return f"{node['NodeManagerAddress']} {' and '.join(kinds)}"


# --- the group


def look(index: int) -> dict[str, Any]:
    """Runs in the bundle. Ray sends it by value, so that the node needs no roost for it."""
    import os
    from pathlib import Path

    import ray

    name = "CUDA_VISIBLE_DEVICES"
    try:
        from ray._private.accelerators import get_accelerator_manager_for_resource

        manager: Any = get_accelerator_manager_for_resource("GPU")
        name = manager.get_visible_accelerator_ids_env_var()
    except (ImportError, AttributeError):  # another Ray than was seen
        pass
    try:  # what the node was started with: Ray sets the variable of this process to the bundle's own GPU
        text = os.fsdecode(Path(f"/proc/{os.environ['RAY_RAYLET_PID']}/environ").read_bytes())
        visible = dict(entry.partition("=")[::2] for entry in text.split("\0")).get(name)
        net = os.readlink("/proc/self/ns/net")
    except (KeyError, OSError):
        visible, net = None, ""
    return {
        "index": index,
        "node_id": ray.get_runtime_context().get_node_id(),
        "address": ray.util.get_node_ip_address(),  # type: ignore[no-untyped-call]
        "gpu_id": ray.get_gpu_ids()[0],
        "visible": visible,
        "place": (os.getuid(), net),
        "pid": os.getpid(),
    }


look.__module__ = "__main__"  # cloudpickle sends what belongs to the main script by value


class RayReservation:
    """A group of this Ray, reserved here or by another program."""

    def __init__(self, ray: Session, group: Any) -> None:
        self._ray, self.group = ray, group
        self._is_removed = False
        self._places: dict[str, Place] = {}  # of nodes, by Ray's id, where a bundle was looked at
        self._look: Any = None  # the task; kept, as Ray sends it to its store once per object
        self._trainers: list[RayTrainers] = []
        self._lock = threading.Lock()

    def is_placed(self) -> bool:
        """Waits a second."""
        try:
            is_placed: bool = self.group.wait(timeout_seconds=1)  # Ray counts whole seconds
        except Exception:  # Ray does not wait for a group that is gone
            is_placed = False
        if not is_placed:
            self.check()
        return is_placed

    def lacking_beside(self, needs: Needs, free: Mapping[str, Mapping[str, float]]) -> str:
        """What is missing outside the group, once Ray's table shows the CPUs of the group as taken: it comes a moment late."""
        name = f"CPU_group_{self.group.id.hex()}"
        if sum(node.get(name, 0) for node in free.values()) < needs.bundles:
            return "Ray is placing the group"
        return needs.lacking_beside(free)

    def check(self) -> None:
        if self._is_removed or group_state(self.group) in ("REMOVED", None):
            raise fault(EngineError, f"the placement group {self.group.id.hex()} is gone", hint=GONE)

    def nodes(self) -> dict[int, str]:
        """Ray's id of the node of each bundle; "" where Ray looks for another node."""
        from ray.util.placement_group import placement_group_table

        self._ray.check()
        self.check()
        table: dict[int, str] = placement_group_table(self.group)["bundles_to_node_id"]
        return {index: table.get(index, "") for index in range(self.group.bundle_count)}

    def has_moved(self, known: Sequence[Bundle]) -> bool:
        nodes = self.nodes()
        return any(nodes.get(bundle.index) != bundle.node_id for bundle in known)

    def find(self, timeout: float, known: Sequence[Bundle] = ()) -> list[Bundle]:
        deadline = time.monotonic() + timeout
        found = {bundle.index: bundle for bundle in known}
        while True:
            nodes = self.nodes()
            missing = [index for index, node in nodes.items() if index not in found or found[index].node_id != node]
            if not missing:
                return [found[index] for index in sorted(found)]
            if time.monotonic() >= deadline:
                raise fault(
                    Timeout,
                    f"Ray has not placed bundles {_roost.ranks_text(missing)} of the placement group after {timeout:g} seconds",
                    hint="nodes may be lost or joining: see `ray status`",
                )
            if not all(nodes.values()):
                self.is_placed()
                continue
            for bundle in self._look_at_all({index: nodes[index] for index in missing}, deadline, timeout):
                found[bundle.index] = bundle

    def _look_at_all(self, nodes: Mapping[int, str], deadline: float, timeout: float) -> list[Bundle]:
        """One task at a time on each node."""
        queues: dict[str, list[int]] = {}
        for index, node in sorted(nodes.items()):
            queues.setdefault(node, []).append(index)
        asked = {self._look_at(queue.pop(0)): (node, queue) for node, queue in queues.items()}
        found: list[Bundle] = []
        while asked:
            ready, _ = self._ray.wait(list(asked), num_returns=1, timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._late(asked, timeout)
            for ref in ready:
                node, queue = asked.pop(ref)
                with told(self._ray, "a bundle of the placement group cannot be looked at", GONE):
                    seen = self._ray.get(ref)
                self._places[seen["node_id"]] = Place(seen["address"], tuple(seen["place"]))
                found.append(Bundle(seen["index"], seen["node_id"], seen["address"], seen["gpu_id"], seen["visible"]))
                if queue:
                    asked[self._look_at(queue.pop(0))] = (node, queue)
        return found

    def _look_at(self, index: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        if self._look is None:
            # max_calls=0 keeps the process for the next bundle: Ray ends one that had a GPU after one task. The least that Ray
            # counts of a GPU is enough to see which one it is.
            self._look = self._ray.remote(num_gpus=0.0001, num_cpus=0, max_calls=0, max_retries=PROBE_TRIES)(look)
        strategy = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=index)
        return self._look.options(scheduling_strategy=strategy, name="roost-look").remote(index)

    def _late(self, asked: Mapping[Any, tuple[str, list[int]]], timeout: float) -> Timeout:
        for ref in asked:
            with contextlib.suppress(Exception):
                self._ray.cancel(ref, force=True)
        addresses = {node["NodeID"]: node["NodeManagerAddress"] for node in alive_nodes(self._ray)}
        where = ", ".join(sorted(addresses.get(node, node) for node, _ in asked.values()))
        return fault(
            Timeout,
            f"no answer from bundles of the placement group on {where} after {timeout:g} seconds",
            hint="look at the raylet's log there, or end what else runs in the group",
        )

    # --- trainers

    def start(self, request: TrainerRequest) -> RayTrainers:
        self._ray.check()
        self.check()
        trainers = RayTrainers(self._ray, self.group, request, self._places)
        with self._lock:
            self._trainers = [*(each for each in self._trainers if not each.is_closed), trainers]
        trainers.start()
        return trainers

    def remove(self) -> None:
        if self._is_removed:
            return
        self._is_removed = True
        with self._lock:
            trainers, self._trainers = self._trainers, []
        with contextlib.ExitStack() as ends:  # all of it happens, also where some trainers cannot be ended
            ends.callback(self._remove_group)
            for each in trainers:
                ends.callback(each.close)

    def _remove_group(self) -> None:
        if not self._ray.is_joined:
            return
        remove_group(self.group)
        deadline = time.monotonic() + REMOVE_SECONDS
        while group_state(self.group) not in ("REMOVED", None) and time.monotonic() < deadline:
            time.sleep(0.02)  # Ray tells nobody of it


# --- what the module is asked for


def reservation_of(group: Any) -> RayReservation:
    return RayReservation(join(), group)


def get(references: Sequence[Any], timeout: float | None) -> list[Any]:
    ray = join()
    try:
        values: list[Any] = ray.get(list(references), timeout=timeout)
    except ray.exceptions.GetTimeoutError:
        late = len(ray.wait(list(references), num_returns=len(references), timeout=0)[1])
        raise fault(Timeout, f"{late} of {len(references)} references have no value after {timeout:g} s") from None
    return values
