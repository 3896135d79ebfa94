"""Placement strategies: what to place, kept until there is a cluster to place it on."""

from collections.abc import Sequence
from typing import Any, Protocol

from roost import _roost
from roost._cluster import even_spec, planning_value

Labels = str | Sequence[str] | None


def label_list(labels: Labels) -> Sequence[str]:
    return [] if labels is None else [labels] if isinstance(labels, str) else labels


def choose(name: str, value: Any, old_name: str, old_value: Any, default: Any = None) -> Any:
    """The value under its name of today or its older one."""
    if old_value is not None and value is not None:
        raise TypeError(f"{old_name} is the older name of {name}: pass one of them")
    chosen = old_value if value is None else value
    if chosen is None and default is None:
        raise TypeError(f"{name} is missing")
    return default if chosen is None else chosen


class Placer(Protocol):
    """Places processes on a cluster of the planner's."""

    @property
    def labels(self) -> Sequence[str]: ...

    @property
    def last_rank(self) -> int: ...

    def place(self, cluster: _roost.Cluster, isolate: bool, /) -> _roost.Placements: ...


class PlacementStrategy:
    """What all strategies have in common: they answer with the placements of their processes."""

    _placer: Placer
    _ranks_per_node_rank = False  # whether ranks count nodes

    def get_placement(
        self,
        cluster: Any = None,
        isolate_accelerator: bool | int | None = None,
        isolate_gpu: bool | None = None,
        *,
        num_nodes_in_cluster: int | None = None,
        num_gpus_per_node: int | None = None,
    ) -> _roost.Placements:
        """The placements of all processes on ``cluster``, in rank order.

        ``cluster`` is a Cluster, or any object with ``get_node_group(label)`` and
        ``get_node_info(rank)``; it is read during the call only. The older forms work too:
        ``get_placement(num_gpus_per_node, isolate_gpu)`` and
        ``get_placement(num_nodes, num_gpus_per_node, isolate_gpu)``.
        """
        if num_gpus_per_node is not None:
            if cluster is not None:
                raise TypeError("num_gpus_per_node is the older form: pass it or cluster")
            return self._place_evenly(num_nodes_in_cluster, num_gpus_per_node, isolate_accelerator, isolate_gpu)
        if isinstance(cluster, int) and not isinstance(cluster, bool):
            if isolate_accelerator is None or isinstance(isolate_accelerator, bool):
                return self._place_evenly(None, cluster, isolate_accelerator, isolate_gpu)
            return self._place_evenly(cluster, isolate_accelerator, None, isolate_gpu)
        value = planning_value(cluster, self._placer.labels or ["cluster"])
        return self._placer.place(value, read_isolation(isolate_accelerator, isolate_gpu))

    def _place_evenly(self, num_nodes: int | None, per_node: int, isolate: Any, isolate_gpu: Any) -> _roost.Placements:
        """On equal nodes; as many as the ranks reach over where the older form names none."""
        if num_nodes is None:
            last = self._placer.last_rank
            num_nodes = (last if self._ranks_per_node_rank else last // max(per_node, 1)) + 1
        return self._placer.place(_roost.Cluster(even_spec(num_nodes, per_node)), read_isolation(isolate, isolate_gpu))

    @classmethod
    def _planned(cls, placer: Placer) -> "PlacementStrategy":
        """A strategy whose processes a config has laid out."""
        self = cls.__new__(cls)
        self._placer = placer
        return self


def read_isolation(isolate_accelerator: Any, isolate_gpu: Any) -> bool:
    isolate = choose("isolate_accelerator", isolate_accelerator, "isolate_gpu", isolate_gpu, True)
    if not isinstance(isolate, bool):
        raise TypeError(f"isolate_accelerator must be a bool, not {isolate!r}")
    return isolate


class PackedPlacementStrategy(PlacementStrategy):
    """Fills accelerators in rank order, a fixed number for each process.

    >>> from roost import Cluster, PackedPlacementStrategy
    >>> cluster = Cluster(num_nodes=1, num_gpus_per_node=4)

    Four processes on accelerators 0 to 3, each with one:

    >>> placement = PackedPlacementStrategy(start_hardware_rank=0, end_hardware_rank=3)
    >>> [p.visible_accelerators for p in placement.get_placement(cluster)]
    [['0'], ['1'], ['2'], ['3']]

    ``num_hardware_per_process`` lets a process hold several:

    >>> placement_chunked = PackedPlacementStrategy(
    ...     start_hardware_rank=0, end_hardware_rank=3, num_hardware_per_process=2
    ... )
    >>> [p.visible_accelerators for p in placement_chunked.get_placement(cluster)]
    [['0', '1'], ['2', '3']]

    ``stride`` sets them apart:

    >>> placement_strided = PackedPlacementStrategy(
    ...     start_hardware_rank=0, end_hardware_rank=3, stride=2, num_hardware_per_process=2
    ... )
    >>> [p.visible_accelerators for p in placement_strided.get_placement(cluster)]
    [['0', '2'], ['1', '3']]

    The older names mean the same:

    >>> old = PackedPlacementStrategy(start_gpu_id=0, end_gpu_id=3, num_gpus_per_process=2, stride=2)
    >>> [(p.node_id, p.local_gpu_id, p.cuda_visible_devices) for p in old.get_placement(8, True)]
    [(0, 0, ['0', '2']), (0, 1, ['1', '3'])]
    """

    def __init__(
        self,
        start_hardware_rank: int | None = None,
        end_hardware_rank: int | None = None,
        num_hardware_per_process: int | None = None,
        stride: int = 1,
        node_group: Labels = None,
        *,
        start_gpu_id: int | None = None,
        end_gpu_id: int | None = None,
        num_gpus_per_process: int | None = None,
    ) -> None:
        self._placer = _roost.Strategy.packed(
            choose("start_hardware_rank", start_hardware_rank, "start_gpu_id", start_gpu_id),
            choose("end_hardware_rank", end_hardware_rank, "end_gpu_id", end_gpu_id),
            choose("num_hardware_per_process", num_hardware_per_process, "num_gpus_per_process", num_gpus_per_process, 1),
            stride,
            label_list(node_group),
        )


class FlexiblePlacementStrategy(PlacementStrategy):
    """Gives every process the accelerators (or other hardware) of its own list.

    Ranks count in the whole cluster, or in the node groups of ``node_group_label``, one after the
    other. Processes are numbered by their lowest rank; the lists are read, never changed.

    >>> from roost import Cluster, FlexiblePlacementStrategy
    >>> cluster = Cluster(num_nodes=1, num_gpus_per_node=4)
    >>> placement = FlexiblePlacementStrategy([[0, 1], [2], [3]])
    >>> [p.visible_accelerators for p in placement.get_placement(cluster)]
    [['0', '1'], ['2'], ['3']]
    """

    def __init__(self, hardware_ranks_list: Sequence[Sequence[int]], node_group_label: Labels = None) -> None:
        self._placer = _roost.Strategy.flexible(hardware_ranks_list, label_list(node_group_label))


class NodePlacementStrategy(PlacementStrategy):
    """Puts processes on nodes, whatever hardware these have.

    >>> from roost import Cluster, NodePlacementStrategy
    >>> cluster = Cluster(num_nodes=1, num_gpus_per_node=0)
    >>> placement = NodePlacementStrategy([0] * 4)
    >>> [(p.rank, p.cluster_node_rank, p.local_world_size) for p in placement.get_placement(cluster)]
    [(0, 0, 4), (1, 0, 4), (2, 0, 4), (3, 0, 4)]
    """

    _ranks_per_node_rank = True

    def __init__(self, node_ranks: Sequence[int], node_group_label: Labels = None) -> None:
        self._placer = _roost.Strategy.node(node_ranks, label_list(node_group_label))
