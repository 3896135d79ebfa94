"""The accelerators of a run in Ray's books: each reserved once, by placement groups with a bundle a node.

Workers ask for no GPU of their own and are pinned to their node, so that collocated components fit; what
they use is what the run reserved. Ray counts accelerators and never says which ones, so which device is
whose is kept by the runs themselves (the NodeManager of each), and asked of every other run first."""

import importlib
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

from roost import _roost
from roost._arguments import fault
from roost._errors import EngineError, Timeout
from roost._ray_cluster import SAY_EVERY, again, running_namespaces
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


def merged(first: Devices, second: Devices) -> Devices:
    return {node: first.get(node, set()) | second.get(node, set()) for node in {*first, *second}}


def plain(devices: Devices) -> dict[str, list[int]]:
    return {node: sorted(numbers) for node, numbers in sorted(devices.items())}


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
    """What one run holds."""

    def __init__(self, ray: Any, namespace: str, nodes: list[dict[str, Any]], manager: Any, is_reserving: bool) -> None:
        self._ray, self._namespace, self._manager = ray, namespace, manager
        self._nodes = {node["id"]: node for node in nodes}
        self._is_reserving = is_reserving
        self._groups: list[Any] = []
        self._held: Devices = {}

    @property
    def held(self) -> Devices:
        return self._held

    def add(self, wanted: Devices, timeout: float = WAIT_SECONDS) -> None:
        """Holds these too; what the run holds already is held once."""
        missing = {node: numbers - self._held.get(node, set()) for node, numbers in wanted.items()}
        missing = {node: numbers for node, numbers in missing.items() if numbers}
        if not missing:
            return
        # Told first and asked then: of two runs that do so at the same time, one at least sees the other.
        # All of it is told: a manager that was made again has forgotten what it was told before.
        self._ray.get(again(self._manager.hold).remote(plain(merged(self._held, missing))), timeout=ASK_SECONDS)
        try:
            self._check_others(missing)
            if self._is_reserving:
                self._reserve(missing, min(timeout, WAIT_SECONDS))
        except BaseException:
            self._ray.get(again(self._manager.let_go).remote(plain(missing)), timeout=ASK_SECONDS)
            raise
        for node, numbers in missing.items():
            self._held.setdefault(node, set()).update(numbers)

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
        name = f"{self._namespace}-{len(self._groups)}"
        try:
            return placement_group(bundles, strategy="SPREAD", name=name, bundle_label_selector=[{"ray.io/node-id": node} for node in nodes])
        except TypeError:  # before Ray 2.49: a node is named by the resource that is its address
            for bundle, node in zip(bundles, nodes, strict=True):
                bundle[f"node:{self._nodes[node]['address']}"] = 0.001
            return placement_group(bundles, strategy="SPREAD", name=name)

    def _reserve(self, wanted: Devices, timeout: float) -> None:
        from ray.util.placement_group import remove_placement_group

        counted = {node: numbers for node, numbers in wanted.items() if self._total(node) > 0}
        for node in sorted(set(wanted) - set(counted), key=self._rank):
            log.warning("%s has accelerators that Ray was not told of: they are not reserved", self._node_words(node))
        if not counted:
            return
        for node, numbers in counted.items():
            self._check_total(node, len(numbers | self._held.get(node, set())))
        group = self._create(counted)
        start = time.monotonic()
        try:
            while not group.wait(timeout_seconds=max(0.1, min(SAY_EVERY, start + timeout - time.monotonic()))):
                lacking = self._lacking(counted)
                if time.monotonic() - start >= timeout:
                    raise fault(Timeout, f"the accelerators of the run were not free after {timeout:g} seconds: {lacking}", hint="end what uses them (`ray status`), or place this run on others")
                log.warning("waiting for accelerators: %s", lacking)
        except BaseException:
            remove_placement_group(group)
            raise
        self._groups.append(group)

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

    def lost(self) -> bool:
        """Whether somebody removed a placement group of ours."""
        from ray.util.placement_group import placement_group_table

        return any(placement_group_table(group).get("state") == "REMOVED" for group in self._groups)

    def close(self) -> None:
        from ray.util.placement_group import remove_placement_group

        groups, self._groups, self._held = self._groups, [], {}
        for group in groups:
            try:
                remove_placement_group(group)
            except Exception as error:
                log.info("a placement group could not be removed: %s", error)
