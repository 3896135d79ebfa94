"""The accelerators of a run in Ray's books: each reserved once, by placement groups with a bundle a node.

Workers ask for no GPU of their own and are pinned to their node, so that collocated components fit; what
they use is what the run reserved. Ray counts accelerators and never says which ones, so which device is
whose is kept by the runs themselves (the NodeManager of each), and asked of every other run first."""

import importlib
import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError, Timeout
from roost._ray_cluster import SAY_EVERY, again, alive_nodes, running_namespaces
from roost._ray_nodes import resource_of

log = logging.getLogger("roost")

WAIT_SECONDS = 60.0
ASK_SECONDS = 10.0

Devices = dict[str, set[int]]  # numbers on a node, by Ray's id of it


def devices_of(placements: _roost.Placements, cluster: _roost.Cluster, ids: list[str]) -> Devices:
    """The accelerators that processes hold; those placed on nodes or robots hold none, whatever they see."""
    held: Devices = {}
    counting = {label for label, kind, *_ in cluster.groups if kind == _roost.accelerator_hardware}
    if placements.strategy == "node":
        return held
    for placement in placements:
        if placement.node_group_label in counting:
            held.setdefault(ids[placement.cluster_node_rank], set()).update(placement.local_hardware_ranks)
    return held


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
        self._groups: dict[str, Any] = {}  # by token; None where nothing was to be reserved

    @property
    def is_begun(self) -> bool:
        return bool(self._groups)

    def add(self, wanted: Devices, timeout: float = WAIT_SECONDS) -> str | None:
        """Holds these too, under the token that is returned; None when the run holds all of them already."""
        self._check_lost()
        self.check_alive(wanted)
        token = secrets.token_hex(8)
        # Told first and asked then: of two runs that do so at the same time, one at least sees the other.
        plain = {node: sorted(numbers) for node, numbers in sorted(wanted.items())}
        missing, held = self._ray.get(again(self._manager.hold).remote(token, plain), timeout=ASK_SECONDS)
        if not missing:
            self.drop(token)
            return None
        try:
            devices: Devices = {node: set(numbers) for node, numbers in missing.items()}
            self._check_others(devices)
            self._groups[token] = self._reserve(devices, held, min(timeout, WAIT_SECONDS)) if self._is_reserving else None
        except BaseException:
            self.drop(token)
            raise
        return token

    def drop(self, token: str) -> None:
        """As if it had never been added."""
        group = self._groups.pop(token, None)
        if group is not None:
            remove_group(group)
        self._ray.get(again(self._manager.let_go).remote(token), timeout=ASK_SECONDS)

    def check_alive(self, nodes: Iterable[str]) -> None:
        alive = {node["NodeID"] for node in alive_nodes(self._ray)}
        for node in sorted(set(nodes) - alive, key=self._rank):
            raise fault(EngineError, f"{self._node_words(node)} is lost: Ray knows it no more", hint="`ray status` lists the nodes; its ranks are never moved to another")

    def _check_lost(self) -> None:
        """Somebody may have removed a placement group of ours: what is placed on its devices is no longer reserved."""
        from ray.util.placement_group import placement_group_table

        for token, group in list(self._groups.items()):
            if group is not None and placement_group_table(group).get("state") == "REMOVED":
                self.drop(token)
                raise fault(
                    EngineError, f"the accelerators of this run are no longer reserved: its placement group {group.id.hex()} was removed by somebody else",
                    hint="close the groups that use them and launch them again: they are reserved anew",
                )  # fmt: skip

    # --- other runs

    def _check_others(self, wanted: Devices) -> None:
        for namespace in sorted(running_namespaces(self._ray) - {self._namespace}):
            try:
                other = self._ray.get_actor("NodeManager", namespace=namespace)
                held, who = self._ray.get(again(other.holds).remote(), timeout=ASK_SECONDS)
            except Exception as error:  # it is just ending, or hangs: what it holds is not known
                log.info("the run in namespace %s gives no answer: %s", namespace, error)
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

    def _bundle(self, node_id: str, count: int) -> dict[str, float]:
        return {resource_of(self._nodes[node_id]["accelerator_type"]): float(count)}

    def _create(self, wanted: Devices) -> Any:
        from ray.util.placement_group import placement_group

        nodes = sorted(wanted, key=self._rank)
        bundles = [self._bundle(node, len(wanted[node])) for node in nodes]
        name = f"{self._namespace}-{secrets.token_hex(4)}"  # several processes of a run may reserve
        try:
            return placement_group(bundles, strategy="SPREAD", name=name, bundle_label_selector=[{"ray.io/node-id": node} for node in nodes])
        except TypeError:  # before Ray 2.49: a node is named by the resource that is its address
            for bundle, node in zip(bundles, nodes, strict=True):
                bundle[f"node:{self._nodes[node]['address']}"] = 0.001
            return placement_group(bundles, strategy="SPREAD", name=name)

    def _reserve(self, wanted: Devices, held: Mapping[str, Sequence[int]], timeout: float) -> Any:
        """The placement group of these; `held` is what the run has then."""
        counted = {node: numbers for node, numbers in wanted.items() if self._total(node) > 0}
        for node in sorted(set(wanted) - set(counted), key=self._rank):
            log.warning("%s has accelerators that Ray was not told of: they are not reserved", self._node_words(node))
        for node in counted:
            self._check_total(node, len(held[node]))
        if not counted:
            return None
        group = self._create(counted)
        try:
            self._await(group, counted, timeout)
        except BaseException:
            remove_group(group)
            raise
        return group

    def _await(self, group: Any, wanted: Devices, timeout: float) -> None:
        from ray.util.placement_group import placement_group_table

        start = said = time.monotonic()
        while not group.wait(timeout_seconds=1):  # Ray counts whole seconds
            now = time.monotonic()
            self.check_alive(wanted)
            if placement_group_table(group).get("state") == "REMOVED":
                raise fault(EngineError, f"the placement group of this run, {group.id.hex()}, was removed by somebody else while it waited", hint="launch again")
            lacking = self._lacking(wanted)
            if now - start >= timeout:
                raise fault(Timeout, f"the accelerators of the run were not free after {timeout:g} seconds: {lacking}", hint="end what uses them (`ray status`), or place this run on others")
            if now - said >= SAY_EVERY:
                said = now
                log.warning("waiting for accelerators: %s", lacking)

    def _total(self, node_id: str) -> float:
        node = self._nodes[node_id]
        return float(node["resources"].get(resource_of(node["accelerator_type"]), 0))

    def _check_total(self, node_id: str, count: int) -> None:
        if count > self._total(node_id):
            raise fault(
                EngineError, f"{self._node_words(node_id)} has {self._total(node_id):g} accelerators by Ray's count, but {count} are wanted",
                hint="start Ray there with the right --num-gpus, or set roost.ray.reserve: false",
            )  # fmt: skip

    def _lacking(self, wanted: Devices) -> str:
        """Which nodes have less free than is wanted, in words."""
        try:
            state = importlib.import_module("ray._private.state")
            free: Mapping[str, Mapping[str, float]] = state.available_resources_per_node()
        except Exception:
            free = {}
        words = []
        for node in sorted(wanted, key=self._rank):
            numbers = wanted[node]
            left = free.get(node, {}).get(resource_of(self._nodes[node]["accelerator_type"]), 0)
            if left < len(numbers):
                words.append(f"{self._node_words(node)} has {left:g} of {self._total(node):g} free, {len(numbers)} are wanted")
        return "; ".join(words) or "Ray has not placed them yet"

    def close(self, has_manager: bool) -> None:
        """Lets go of all; a run that ends takes its manager with it."""
        tokens, groups = list(self._groups), [group for group in self._groups.values() if group is not None]
        self._groups = {}
        for group in groups:
            remove_group(group)
        if has_manager:
            for token in tokens:
                self._manager.let_go.remote(token)


def remove_group(group: Any) -> None:
    from ray.util.placement_group import remove_placement_group

    try:
        remove_placement_group(group)
    except Exception as error:
        log.info("a placement group could not be removed: %s", error)
