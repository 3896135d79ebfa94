"""Reserves the placement group of a slime job, learns where its bundles are, and cuts it into shares.

Sizes, order and inference engines are decided by the planner in C; an engine (roost._work.bundles) reserves and looks."""

import logging
import sys
import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from roost import _roost
from roost._plan.arguments import check_seconds
from roost._plan.errors import fault
from roost._slime.layout import BundleOrder, EngineLayout, get_engine_layout, layout_table, order_bundles
from roost._slime.variables import own_variables
from roost._work.bundles import Bundle, Reservation, ReserveRequest, engine_of, group_key, load_bundles
from roost._work.cluster import Cluster

log = logging.getLogger("roost")

FIND_SECONDS = 120.0  # for nodes that are there to say where bundles are
WHOLE = 10_000  # fractions of a GPU are counted in these, as Ray does

Share = tuple[Any, ...]
Role = str


class Placed:
    """A placement group: where its bundles are, the shares that were handed out, and how much of each GPU is in use."""

    def __init__(self, reservation: Reservation, args: Any) -> None:
        self.reservation, self._args = reservation, args
        self.bundles: list[Bundle] = []  # by slot
        self._lists: list[tuple[int, list[int], list[Any]]] = []  # of shares: first slot, indices, GPU ids
        self._used: dict[int, int] = {}  # by bundle index
        self._lock = threading.Lock()

    def learn(self, timeout: float = FIND_SECONDS) -> EngineLayout | None:
        """Finds the bundles, sorts them, and checks inference engines against what was found. Shares that were handed out are
        filled again."""
        found = self.reservation.find(timeout, self.bundles)
        order = sort(found)
        layout = None if self._args is None else get_engine_layout(self._args, order=order)
        by_index = {bundle.index: bundle for bundle in found}
        self.bundles = [by_index[index] for index in order.indices]
        for first, indices, gpu_ids in self._lists:
            indices[:] = [bundle.index for bundle in self.bundles[first:]]
            gpu_ids[:] = [bundle.gpu_id for bundle in self.bundles[first:]]
        return layout

    def refresh(self, timeout: float = FIND_SECONDS) -> None:
        """Learns again where Ray has moved a bundle, and reports what moved."""
        if not self.reservation.has_moved(self.bundles):
            return
        before = {bundle.index: bundle for bundle in self.bundles}
        self.learn(min(timeout, FIND_SECONDS))
        for slot, bundle in enumerate(self.bundles):
            if (old := before[bundle.index]).node_id != bundle.node_id:
                log.warning(
                    "bundle %d moved from %s to %s; it is slot %d now", bundle.index, where(old), where(bundle), slot
                )

    def share(self, first: int, has_gpu_ids: bool) -> Share:
        """The slots from `first` on."""
        indices = [bundle.index for bundle in self.bundles[first:]]
        gpu_ids = [bundle.gpu_id for bundle in self.bundles[first:]]
        self._lists.append((first, indices, gpu_ids))
        return (self.reservation.group, indices, gpu_ids) if has_gpu_ids else (self.reservation.group, indices)

    def take(self, indices: Sequence[int], fraction: float, who: str) -> None:
        """Counts a fraction of the GPU of each bundle as used. Ray would let what does not fit wait for ever."""
        wanted = round(fraction * WHOLE)
        with self._lock:
            for index in indices:
                left = WHOLE - self._used.get(index, 0)
                if wanted > left:
                    raise fault(
                        _roost.Error,
                        f"{who} wants {fraction:g} of the GPU of bundle {index}, but {left / WHOLE:g} of it is left",
                        hint="release what else runs there, or lower num_gpus_per_actor",
                        code="fit",
                    )
            for index in indices:
                self._used[index] = self._used.get(index, 0) + wanted

    def give_back(self, indices: Sequence[int], fraction: float) -> None:
        with self._lock:
            for index in indices:
                self._used[index] -= round(fraction * WHOLE)


def where(bundle: Bundle) -> str:
    return f"{bundle.address or f'node {int(bundle.node_id)}'} GPU {bundle.gpu_id}"


def sort(found: Sequence[Bundle]) -> BundleOrder:
    visible: dict[Hashable, str] = {
        (bundle.node_id, bundle.address): bundle.visible for bundle in found if bundle.visible
    }
    return order_bundles(
        [(bundle.index, (bundle.node_id, bundle.address), bundle.gpu_id) for bundle in found], visible=visible
    )


placed: dict[str, Placed] = {}  # the groups of this process, by key


def placed_of(group: Any) -> Placed:
    """What is known of a group; one that another program has reserved is learned now."""
    found = placed.get(group_key(group))
    if found is None:
        found = Placed(load_bundles(engine_of(group)).reservation_of(group), None)
        found.learn()
        placed[group_key(group)] = found
    return found


def create_placement_groups(
    args: Any, cluster: Cluster | None = None, *, timeout: float = 600
) -> dict[str, Share | None]:
    """Reserves the GPUs of a job and returns the shares of its roles: ``{"actor": share, "critic": share or None, "rollout": share}``.

    A share is ``(group, indices, gpu_ids)``: bundle ``indices[s]`` is slot ``s`` of the role and has the GPU ``gpu_ids[s]``. With
    ``profile: seed`` it is ``(group, indices)``. A job of no GPUs has ``(None, [], [])`` and needs no engine.

    ``args`` has slime's arguments. What cannot run is refused before anything is reserved, and the plan is printed to stderr.
    Without ``cluster`` the GPUs are those of the Ray cluster that the program has joined, else of the one that RAY_ADDRESS or this
    machine has. With a ``roost.Cluster`` its engine decides.

    ``timeout`` bounds the wait for resources that are not there yet, in seconds; 0 refuses at once.

    Raises roost.Error for arguments that are wrong, roost.Timeout with counts where resources do not come, and EngineError where
    the engine cannot be used. Nothing is reserved then.
    """
    check_seconds("timeout", timeout)
    if cluster is not None and not isinstance(cluster, Cluster):
        raise TypeError(f"cluster must be a roost.Cluster, not {cluster!r}")
    layout = get_engine_layout(args, cluster)
    own_variables(args)
    say(layout_table(args, cluster))
    if layout.num_gpus == 0:
        return cut(layout, None)
    engine = "ray" if cluster is None else cluster._engine
    request = ReserveRequest(layout.num_gpus, layout.num_cpus, float(timeout), say)
    found = Placed(load_bundles(engine).reserve(cluster, request), args)
    try:
        layout = found.learn() or layout
    except BaseException:
        found.reservation.remove()
        raise
    placed[group_key(found.reservation.group)] = found
    for slot, bundle in enumerate(found.bundles):
        log.info("slot %d: bundle %d, %s", slot, bundle.index, where(bundle))
    return cut(layout, found)


def cut(layout: EngineLayout, found: Placed | None) -> dict[str, Share | None]:
    def share(first: int) -> Share:
        if found is None:
            return (None, [], []) if layout.share_gpu_ids else (None, [])
        return found.share(first, layout.share_gpu_ids)

    actor = share(0)
    critic = actor if layout.shares["critic"] is not None else None
    return {"actor": actor, "critic": critic, "rollout": share(layout.rollout_offset)}


def remove_placement_groups(groups: Mapping[str, Share | None]) -> None:
    """Gives back what ``create_placement_groups`` reserved, and ends the trainers in it. A second call does nothing.

    Raises EngineError where processes of the group cannot be ended.
    """
    for group in {id(share[0]): share[0] for share in groups.values() if share and share[0] is not None}.values():
        found = placed.pop(group_key(group), None)
        if found is not None:
            found.reservation.remove()


def say(text: str) -> None:
    """To people, as the program does."""
    for line in text.rstrip("\n").split("\n"):
        print(f"roost: {line}".rstrip(), file=sys.stderr)
