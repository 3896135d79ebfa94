"""Reserves the accelerators of a run in Ray: each one once, by placement groups with one bundle for each node.

Workers request no GPU from Ray and are pinned to their node, so that collocated components fit. They use the accelerators
that their run has reserved. Ray counts accelerators and does not tell which ones. So each run remembers in its NodeManager
which devices it holds, and a process asks the NodeManagers of the other runs first. A process reserves the devices that its
run has not reserved yet. When it ends and others still use some, NodeManager reserves those."""

import logging
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.join import (
    MANAGERS_GONE,
    SAY_EVERY,
    again,
    check_alive,
    running_namespaces,
    state,
    told,
    version_numbers,
    who_asks,
)
from roost._ray.journal import OverError
from roost._ray.nodes import resource_of
from roost._ray.reservations import Devices, Kinds, Plain, Reservation, minus, plain, sets, union

log = logging.getLogger("roost")

WAIT_SECONDS = 60.0
ASK_SECONDS = 30.0  # a manager that was killed is there again by then
HEEDS_LABELS = (2, 49)  # older versions of Ray take labels of nodes for bundles, and place them anywhere
TURN_SECONDS = 0.2  # between questions whether another process of the run is done with reserving the same


def devices_of(placements: _roost.Placements, cluster: _roost.Cluster, ids: list[str]) -> Devices:
    """The accelerators that processes hold, by Ray's ids of their nodes."""
    held: Devices = {}
    for node_rank, number in placements.held_accelerators(cluster):
        held.setdefault(ids[node_rank], set()).add(number)
    return held


def plan_devices(config: _roost.Config | None, cluster: _roost.Cluster, ids: list[str]) -> Devices:
    """Those of all that a config places."""
    planned: Devices = {}
    if config is None or not config.components:
        return planned
    try:
        plan = _roost.Plan(config, cluster)
    except _roost.Error:  # a config for another mode of placement: each group brings its own
        return planned
    for component in config.components:
        for node, numbers in devices_of(plan.placements(component), cluster, ids).items():
            planned.setdefault(node, set()).update(numbers)
    return planned


class Reserver:
    """Makes and ends the reservations of this process."""

    def __init__(self, ray: Any, namespace: str, nodes: list[dict[str, Any]], manager: Any, is_reserving: bool) -> None:
        self._ray, self._namespace, self._manager = ray, namespace, manager
        self._nodes = {node["id"]: node for node in nodes}
        self._is_reserving = is_reserving
        self._held: dict[str, Devices] = {}  # by reservation id, of launches that go on or have succeeded
        self._kept: set[str] = set()  # the ids of those that have succeeded
        self._groups: dict[str, Any] = {}  # placement groups, by the id of the reservation that has one
        self._told: set[str] = set()  # nodes that a warning has named

    def add(self, wanted: Devices, timeout: float = WAIT_SECONDS) -> str | None:
        """Holds these devices and returns the id of the reservation, for keep() or drop(). Returns None when this process
        holds all of them already."""
        self._check_lost()
        self.check_alive(wanted)
        if not minus(wanted, union(self._held.get(reservation_id, {}) for reservation_id in list(self._kept))):
            return None
        reservation_id = secrets.token_hex(8)
        timeout = min(timeout, WAIT_SECONDS)
        kinds = self._kinds(wanted)
        try:
            # Hold first, then ask the other runs: of two runs that do so at the same time, at least one sees the other.
            new, missing, held = self._hold(reservation_id, wanted, kinds, timeout)
            self._check_others(sets(new))
            if missing:
                self._groups[reservation_id] = self._reserve(reservation_id, sets(missing), kinds, held, timeout)
            if new or missing:
                self._ask(self._manager.settle, reservation_id)
        except BaseException:
            self.drop(reservation_id)
            raise
        self._held[reservation_id] = wanted
        return reservation_id

    def _hold(self, reservation_id: str, wanted: Devices, kinds: Kinds, timeout: float) -> tuple[Plain, Plain, Plain]:
        deadline = time.monotonic() + timeout
        while True:
            answer: tuple[Plain, Plain, Plain] | None = self._ask(
                self._manager.hold, reservation_id, plain(wanted), who_asks(self._ray), kinds
            )
            if answer is not None:
                return answer
            if time.monotonic() >= deadline:
                raise fault(
                    Timeout,
                    f"other launches of this run were still reserving the same accelerators after {timeout:g} seconds",
                    hint="launch again, or one after the other",
                )
            time.sleep(TURN_SECONDS)

    def keep(self, reservation_id: str | None) -> None:
        """Keeps a reservation until this process ends."""
        if reservation_id is not None:
            self._kept.add(reservation_id)

    def drop(self, reservation_id: str) -> None:
        """Ends a reservation as if it had never been made."""
        self._kept.discard(reservation_id)
        self._held.pop(reservation_id, None)
        if not self._ray.is_joined:
            return
        try:
            # Before the placement group is removed: NodeManager has then already reserved what others hold.
            self._ask(self._manager.let_go, reservation_id)
        except _roost.Error as error:
            log.warning(
                "accelerators may stay held: %s (they are free when it has heard of this, or when the run ends)",
                error.message,
            )
        group = self._groups.pop(reservation_id, None)
        if group is not None:
            remove_group(group)

    def _ask(self, method: Any, *args: Any) -> Any:
        deadline = time.monotonic() + ASK_SECONDS
        try:
            while True:
                try:
                    with told(self._ray, "the NodeManager of the run does not answer", MANAGERS_GONE):
                        return self._ray.get(again(method).remote(*args), timeout=max(0.0, deadline - time.monotonic()))
                except OverError:  # of a life that is over: the next one is asked
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(TURN_SECONDS)
        except Timeout:
            raise fault(
                Timeout,
                f"the NodeManager of the run has not answered after {ASK_SECONDS:g} seconds",
                hint="look at the raylet's log of node 0",
            ) from None

    def check_alive(self, nodes: Iterable[str]) -> None:
        check_alive(self._ray, {node: self._node_words(node) for node in sorted(nodes, key=self._rank)})

    def find_lost(self) -> tuple[str, str] | None:
        """A reservation whose placement group another program has removed, so that Ray may give its devices away: its id,
        and what to report. The launch itself finds this out for a reservation that is under way."""
        for reservation_id, group in [
            (reservation_id, self._groups[reservation_id])
            for reservation_id in list(self._kept)
            if reservation_id in self._groups
        ]:
            if group_state(group) == "REMOVED":
                return (
                    reservation_id,
                    f"the accelerators of this run are no longer reserved: its placement group {group.id.hex()} was removed by somebody else",
                )
        return None

    def _check_lost(self) -> None:
        """Raises once for a lost reservation. Its workers still use the devices, so they are held under another id, and
        NodeManager reserves them again."""
        if lost := self.find_lost():
            reservation_id, words = lost
            if devices := self._held.get(reservation_id):
                other = secrets.token_hex(8)
                self._hold(other, devices, self._kinds(devices), WAIT_SECONDS)
                self._held[other] = devices
                self.keep(other)
            self.drop(reservation_id)
            raise fault(
                EngineError,
                words,
                hint="they are reserved anew, but Ray may have given them to others meanwhile: see `ray status`, then launch again",
            )

    # --- other runs

    def _check_others(self, wanted: Devices) -> None:
        if not wanted:
            return
        for namespace in sorted(running_namespaces(self._ray) - {self._namespace}):
            try:
                other = self._ray.get_actor("NodeManager", namespace=namespace)
                held, who = self._ray.get(again(other.holds).remote(), timeout=ASK_SECONDS)
            except (ValueError, self._ray.exceptions.ActorDiedError):  # it has just ended
                continue
            except Exception as error:
                log.warning(
                    "the run in namespace '%s' does not say which accelerators it uses, they may be the same: %s",
                    namespace,
                    str(error).partition("\n")[0],
                )
                continue
            clashes = {node: set(held[node]) & numbers for node, numbers in wanted.items() if node in held}
            words = "; ".join(
                f"{self._node_words(node)}: {_roost.ranks_text(sorted(clashes[node]))}"
                for node in sorted(clashes, key=self._rank)
                if clashes[node]
            )
            if not words:
                continue
            message = f"accelerators are in use by run {who} in namespace '{namespace}' ({words})"
            if self._is_reserving:
                raise fault(
                    EngineError,
                    message,
                    hint="place this run on others, end that run, or set roost.ray.reserve: false to share them",
                )
            log.warning("%s; they are shared, as roost.ray.reserve is false", message)

    def _rank(self, node_id: str) -> int:
        return int(self._nodes[node_id]["node_rank"])

    def _node_words(self, node_id: str) -> str:
        node = self._nodes[node_id]
        return f"node {node['node_rank']} ({node['address']})"

    # --- reserving in Ray

    def _kinds(self, wanted: Devices) -> Kinds:
        """The kinds of the nodes where Ray counts accelerators."""
        if not self._is_reserving:
            return {}
        for node in sorted({node for node in wanted if self._total(node) <= 0} - self._told, key=self._rank):
            self._told.add(node)
            log.warning("%s has accelerators that Ray was not told of: they are not reserved", self._node_words(node))
        return {
            node: [resource_of(self._nodes[node]["resources"]), self._nodes[node]["address"]]
            for node in wanted
            if self._total(node) > 0
        }

    def _reserve(self, reservation_id: str, wanted: Devices, kinds: Kinds, held: Plain, timeout: float) -> Any:
        """The placement group of these; `held` is what the run has then."""
        for node in wanted:
            self._check_total(node, len(held[node]))
        group = create_group(
            self._namespace, reservation_id, {node: wanted[node] for node in sorted(wanted, key=self._rank)}, kinds
        )
        try:
            self._await(group, wanted, timeout)
        except BaseException:
            remove_group(group)
            raise
        return group

    def _await(self, group: Any, wanted: Devices, timeout: float) -> None:
        start = said = time.monotonic()
        while not self._is_ready(group):
            now = time.monotonic()
            self.check_alive(wanted)
            lacking = self._lacking(wanted)
            if now - start >= timeout:
                raise fault(
                    Timeout,
                    f"the accelerators of the run were not free after {timeout:g} seconds: {lacking}",
                    hint="end what uses them (`ray status`), place this run on fewer of them or on other nodes, or set roost.ray.reserve: false to share them",
                )
            if now - said >= SAY_EVERY:
                said = now
                log.warning("waiting for accelerators: %s; %.0f seconds are left", lacking, start + timeout - now)

    def _is_ready(self, group: Any) -> bool:
        """Waits a second."""
        try:
            is_ready: bool = group.wait(timeout_seconds=1)  # Ray counts whole seconds
        except Exception:  # Ray does not wait for a group that is gone
            is_ready = False
        if not is_ready and group_state(group) in ("REMOVED", None):
            raise fault(
                EngineError,
                f"the placement group of this run, {group.id.hex()}, was removed by somebody else while it waited",
                hint="launch again",
            )
        return is_ready

    def _total(self, node_id: str) -> float:
        resources = self._nodes[node_id]["resources"]
        return float(resources.get(resource_of(resources), 0))

    def _check_total(self, node_id: str, count: int) -> None:
        if count > self._total(node_id):
            raise fault(
                EngineError,
                f"{self._node_words(node_id)} has {self._total(node_id):g} accelerators by Ray's count, but {count} are wanted",
                hint="start Ray there with the right --num-gpus, or set roost.ray.reserve: false",
            )

    def _lacking(self, wanted: Devices) -> str:
        """Which nodes have less free than is wanted, in words."""
        try:
            free: Mapping[str, Mapping[str, float]] = state().available_resources_per_node()
        except Exception:
            free = {}
        words = []
        for node in sorted(wanted, key=self._rank):
            numbers = wanted[node]
            left = free.get(node, {}).get(resource_of(self._nodes[node]["resources"]), 0)
            if left < len(numbers):
                words.append(
                    f"{self._node_words(node)} has {left:g} of {self._total(node):g} free, {len(numbers)} are wanted"
                )
        return "; ".join(words) or "Ray has not placed them yet"

    def close(self, has_manager: bool) -> None:
        """Ends all reservations. `has_manager`: the run goes on, so its NodeManager is told."""
        held, groups = list(self._held), list(self._groups.values())
        self._held, self._groups, self._kept = {}, {}, set()
        if has_manager:
            for reservation_id in held:
                self._manager.let_go.remote(reservation_id)
        for group in groups:
            remove_group(group)


# --- Ray's placement groups: one for each reservation, with one bundle for each node


def create_group(namespace: str, reservation_id: str, wanted: Devices, kinds: Kinds) -> Any:
    """Requests a placement group without waiting for it. It ends with the process that requests it."""
    import ray
    from ray.util.placement_group import placement_group

    bundles = [{kinds[node][0]: float(len(numbers))} for node, numbers in wanted.items()]
    name = f"{namespace}-{reservation_id}"
    if version_numbers(ray.__version__) >= HEEDS_LABELS:
        return placement_group(
            bundles, strategy="SPREAD", name=name, bundle_label_selector=[{"ray.io/node-id": node} for node in wanted]
        )
    for bundle, node in zip(bundles, wanted, strict=True):
        bundle[f"node:{kinds[node][1]}"] = 0.001  # the resource that is its address
    return placement_group(bundles, strategy="SPREAD", name=name)


def remove_group(group: Any) -> None:
    from ray.util.placement_group import remove_placement_group

    try:
        remove_placement_group(group)
    except Exception as error:
        log.info("a placement group could not be removed: %s", error)


def group_state(group: Any) -> str | None:
    from ray.util.placement_group import placement_group_table

    found: str | None = placement_group_table(group).get("state")
    return found


def balance(namespace: str, own: Mapping[str, Reservation], ended: Collection[str]) -> None:
    """Makes Ray have the placement groups of the run itself, and none of ended reservations. Ray keeps the placement group
    of an actor that has ended as long as its job."""
    import ray
    from ray.util.placement_group import PlacementGroup, placement_group_table

    there: dict[str, str] = {}
    for number, entry in placement_group_table().items():
        prefix, _, reservation_id = entry["name"].rpartition("-")
        if prefix == namespace and entry["state"] != "REMOVED":
            there[reservation_id] = number
    for reservation_id, reservation in own.items():
        if reservation_id not in there:
            create_group(namespace, reservation_id, reservation.reserves, reservation.kinds)
    for reservation_id in there.keys() & set(ended):
        remove_group(PlacementGroup(ray.PlacementGroupID.from_hex(there[reservation_id])))
