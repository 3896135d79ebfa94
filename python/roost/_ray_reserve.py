"""The accelerators of a run in Ray's books: each reserved once, by placement groups with a bundle a node.

Workers ask for no GPU of their own and are pinned to their node, so that collocated components fit; what
they use is what the run reserved. Ray counts accelerators and never says which ones, so which device is
whose is kept by the runs themselves (the NodeManager of each), and asked of every other run first.
A process reserves what is not reserved in its run yet; what it leaves behind and others use, NodeManager does."""

import logging
import secrets
import time
from collections.abc import Iterable, Mapping
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError, Timeout
from roost._ray_books import create_group, group_state, remove_group
from roost._ray_cluster import MANAGERS_GONE, SAY_EVERY, again, check_alive, running_namespaces, state, told
from roost._ray_holdings import Devices, Kinds, Plain, minus, plain, sets, union
from roost._ray_ledger import OverError
from roost._ray_managers import who_asks
from roost._ray_nodes import resource_of

log = logging.getLogger("roost")

WAIT_SECONDS = 60.0
ASK_SECONDS = 30.0  # a manager that was killed is there again by then
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


def numbers_text(numbers: Iterable[int]) -> str:
    """0-3, 5."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


class Reservation:
    """What this process has reserved for its run."""

    def __init__(self, ray: Any, namespace: str, nodes: list[dict[str, Any]], manager: Any, is_reserving: bool) -> None:
        self._ray, self._namespace, self._manager = ray, namespace, manager
        self._nodes = {node["id"]: node for node in nodes}
        self._is_reserving = is_reserving
        self._held: dict[str, Devices] = {}  # by token, of launches that go on or have succeeded
        self._kept: set[str] = set()  # of those that have
        self._groups: dict[str, Any] = {}  # by token, where something was reserved under it
        self._told: set[str] = set()  # nodes that were warned about

    def add(self, wanted: Devices, timeout: float = WAIT_SECONDS) -> str | None:
        """Holds these, under the token that is returned, and that is then kept or dropped; None when this process holds
        all of them already."""
        self._check_lost()
        self.check_alive(wanted)
        if not minus(wanted, union(self._held.get(token, {}) for token in list(self._kept))):
            return None
        token = secrets.token_hex(8)
        timeout = min(timeout, WAIT_SECONDS)
        kinds = self._kinds(wanted)
        try:
            # Told first and asked then: of two runs that do so at the same time, one at least sees the other.
            new, missing, held = self._hold(token, wanted, kinds, timeout)
            self._check_others(sets(new))
            if missing:
                self._groups[token] = self._reserve(token, sets(missing), kinds, held, timeout)
            if new or missing:
                self._ask(self._manager.settle, token)
        except BaseException:
            self.drop(token)
            raise
        self._held[token] = wanted
        return token

    def _hold(self, token: str, wanted: Devices, kinds: Kinds, timeout: float) -> tuple[Plain, Plain, Plain]:
        deadline = time.monotonic() + timeout
        while True:
            answer: tuple[Plain, Plain, Plain] | None = self._ask(self._manager.hold, token, plain(wanted), who_asks(self._ray), kinds)
            if answer is not None:
                return answer
            if time.monotonic() >= deadline:
                raise fault(Timeout, f"other launches of this run were still reserving the same accelerators after {timeout:g} seconds", hint="launch again, or one after the other")
            time.sleep(TURN_SECONDS)

    def keep(self, token: str | None) -> None:
        """What was added is held until this process ends."""
        if token is not None:
            self._kept.add(token)

    def drop(self, token: str) -> None:
        """As if it had never been added."""
        self._kept.discard(token)
        self._held.pop(token, None)
        if not self._ray.is_joined:
            return
        try:
            # Before the placement group is removed: what others hold is then wanted anew already.
            self._ask(self._manager.let_go, token)
        except _roost.Error as error:
            log.warning("accelerators may stay held: %s (they are free when it has heard of this, or when the run ends)", str(error).removesuffix(f" ({error.hint})"))
        group = self._groups.pop(token, None)
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
            raise fault(Timeout, f"the NodeManager of the run has not answered after {ASK_SECONDS:g} seconds", hint="look at the raylet's log of node 0") from None

    def check_alive(self, nodes: Iterable[str]) -> None:
        check_alive(self._ray, {node: self._node_words(node) for node in sorted(nodes, key=self._rank)})

    def find_lost(self) -> tuple[str, str] | None:
        """Somebody may have removed a placement group of ours: what is placed on its devices is no longer reserved. Its token,
        and what to say. Those of launches under way are for whoever launches."""
        for token, group in [(token, self._groups[token]) for token in list(self._kept) if token in self._groups]:
            if group_state(group) == "REMOVED":
                return token, f"the accelerators of this run are no longer reserved: its placement group {group.id.hex()} was removed by somebody else"
        return None

    def _check_lost(self) -> None:
        """Told once. What runs there still uses them: other runs hear of it, and NodeManager reserves them anew."""
        if lost := self.find_lost():
            token, words = lost
            if devices := self._held.get(token):
                other = secrets.token_hex(8)
                self._hold(other, devices, self._kinds(devices), WAIT_SECONDS)
                self._held[other] = devices
                self.keep(other)
            self.drop(token)
            raise fault(EngineError, words, hint="they are reserved anew, but Ray may have given them to others meanwhile: see `ray status`, then launch again")

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
                log.warning("the run in namespace '%s' does not say which accelerators it uses, they may be the same: %s", namespace, str(error).partition("\n")[0])
                continue
            clashes = {node: set(held[node]) & numbers for node, numbers in wanted.items() if node in held}
            words = "; ".join(f"{self._node_words(node)}: {numbers_text(clashes[node])}" for node in sorted(clashes, key=self._rank) if clashes[node])
            if not words:
                continue
            message = f"accelerators are in use by run {who} in namespace '{namespace}' ({words})"
            if self._is_reserving:
                raise fault(EngineError, message, hint="place this run on others, end that run, or set roost.ray.reserve: false to share them")
            log.warning("%s; they are shared, as roost.ray.reserve is false", message)

    def _rank(self, node_id: str) -> int:
        return int(self._nodes[node_id]["node_rank"])

    def _node_words(self, node_id: str) -> str:
        node = self._nodes[node_id]
        return f"node {node['node_rank']} ({node['address']})"

    # --- Ray's books

    def _kinds(self, wanted: Devices) -> Kinds:
        """Of the nodes where something is to be reserved."""
        if not self._is_reserving:
            return {}
        for node in sorted({node for node in wanted if self._total(node) <= 0} - self._told, key=self._rank):
            self._told.add(node)
            log.warning("%s has accelerators that Ray was not told of: they are not reserved", self._node_words(node))
        return {node: [resource_of(self._nodes[node]["resources"]), self._nodes[node]["address"]] for node in wanted if self._total(node) > 0}

    def _reserve(self, token: str, wanted: Devices, kinds: Kinds, held: Plain, timeout: float) -> Any:
        """The placement group of these; `held` is what the run has then."""
        for node in wanted:
            self._check_total(node, len(held[node]))
        group = create_group(self._namespace, token, {node: wanted[node] for node in sorted(wanted, key=self._rank)}, kinds)
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
                raise fault(Timeout, f"the accelerators of the run were not free after {timeout:g} seconds: {lacking}", hint="end what uses them (`ray status`), place this run on fewer of them or on other nodes, or set roost.ray.reserve: false to share them")
            if now - said >= SAY_EVERY:
                said = now
                log.warning("waiting for accelerators: %s; %.0f seconds are left", lacking, start + timeout - now)

    def _is_ready(self, group: Any) -> bool:
        """Waits a second."""
        try:
            is_ready: bool = group.wait(timeout_seconds=1)  # Ray counts whole seconds
        except Exception:  # one that is gone is waited for by nobody
            is_ready = False
        if not is_ready and group_state(group) in ("REMOVED", None):
            raise fault(EngineError, f"the placement group of this run, {group.id.hex()}, was removed by somebody else while it waited", hint="launch again")
        return is_ready

    def _total(self, node_id: str) -> float:
        resources = self._nodes[node_id]["resources"]
        return float(resources.get(resource_of(resources), 0))

    def _check_total(self, node_id: str, count: int) -> None:
        if count > self._total(node_id):
            raise fault(
                EngineError, f"{self._node_words(node_id)} has {self._total(node_id):g} accelerators by Ray's count, but {count} are wanted",
                hint="start Ray there with the right --num-gpus, or set roost.ray.reserve: false",
            )  # fmt: skip

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
                words.append(f"{self._node_words(node)} has {left:g} of {self._total(node):g} free, {len(numbers)} are wanted")
        return "; ".join(words) or "Ray has not placed them yet"

    def close(self, has_manager: bool) -> None:
        """Lets go of all; a run that ends takes its manager with it."""
        tokens, groups = list(self._held), list(self._groups.values())
        self._held, self._groups, self._kept = {}, {}, set()
        if has_manager:
            for token in tokens:
                self._manager.let_go.remote(token)
        for group in groups:
            remove_group(group)
