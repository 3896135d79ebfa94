"""Placement strategies: what to place, kept until there is a cluster to place it on."""

import reprlib
from collections.abc import Sequence
from typing import Any, overload

from roost import _roost
from roost._plan.arguments import as_bool, as_count, is_bool, is_int
from roost._plan.cluster import even_spec, planning_value

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


class PlacementStrategy:
    """The base class of strategies. ``get_placement(cluster)`` returns the placements of the strategy's processes.

    Two strategies with the same numbers are equal. A strategy can be pickled: only its numbers go along, no cluster.
    """

    _kind = ""
    _ranks_are_nodes = False
    _words: tuple[str, ...] = ()  # names of its arguments, as its numbers have them
    _made: _roost.Strategy | None = None
    # Of a config: its processes on the cluster it was planned on, and whether they may be isolated.
    _rows: _roost.Placements | None = None
    _planned_on: _roost.Cluster | None = None
    _isolates = True

    @classmethod
    def _of(cls, rows: _roost.Placements, cluster: _roost.Cluster) -> "PlacementStrategy":
        """A strategy whose processes a config has laid out on a cluster."""
        self = cls.__new__(cls)
        self._rows, self._planned_on, self._isolates = rows, cluster, rows.isolate_accelerator
        return self

    @property
    def _numbers(self) -> _roost.Strategy:
        if self._made is None:
            assert self._rows is not None and self._planned_on is not None
            self._made = _roost.Strategy.of(self._rows, self._planned_on)
        return self._made

    @overload
    def get_placement(self, cluster: Any, isolate_accelerator: bool = True) -> _roost.Placements: ...
    @overload
    def get_placement(self, num_gpus_per_node: int, isolate_gpu: bool = True) -> _roost.Placements: ...
    @overload
    def get_placement(
        self, num_nodes_in_cluster: int, num_gpus_per_node: int, isolate_gpu: bool = True
    ) -> _roost.Placements: ...
    @overload
    def get_placement(self, *arguments: Any, **words: Any) -> _roost.Placements: ...

    def get_placement(
        self,
        *arguments: Any,
        cluster: Any = None,
        isolate_accelerator: bool | None = None,
        isolate_gpu: bool | None = None,
        num_nodes_in_cluster: int | None = None,
        num_gpus_per_node: int | None = None,
    ) -> _roost.Placements:
        """The placements of all processes on ``cluster``, in rank order.

        ``cluster`` is a Cluster, or any object with ``get_node_group(label)`` and ``get_node_info(rank)``; it is read
        during the call only. ``isolate_accelerator``: whether a process sees only its own accelerators. The older forms
        work too: ``get_placement(num_gpus_per_node, isolate_gpu)`` and
        ``get_placement(num_nodes, num_gpus_per_node, isolate_gpu)``.

        Raises roost.RankError where a rank does not fit the cluster, and TypeError for wrong arguments.
        """
        if not arguments and cluster is None and num_nodes_in_cluster is None and num_gpus_per_node is None:
            raise TypeError("cluster is missing")
        words = {
            "cluster": cluster,
            "isolate_accelerator": isolate_accelerator,
            "isolate_gpu": isolate_gpu,
            "num_nodes_in_cluster": num_nodes_in_cluster,
            "num_gpus_per_node": num_gpus_per_node,
        }
        return self._placement_by(**name_arguments(arguments, words))

    def _placement_by(
        self,
        cluster: Any,
        isolate_accelerator: Any,
        isolate_gpu: Any,
        num_nodes_in_cluster: Any,
        num_gpus_per_node: Any,
    ) -> _roost.Placements:
        isolate = read_isolation(isolate_accelerator, isolate_gpu)
        if num_gpus_per_node is None and num_nodes_in_cluster is None:
            return self._place(planning_value(cluster, self._labels()), isolate)
        if cluster is not None:
            name = "num_nodes_in_cluster" if num_gpus_per_node is None else "num_gpus_per_node"
            raise TypeError(f"{name} is the older form: pass it or cluster")
        if num_gpus_per_node is None:
            raise TypeError("num_nodes_in_cluster says nothing of accelerators: pass num_gpus_per_node too")
        return self._place(_roost.Cluster(self._even_cluster(num_nodes_in_cluster, num_gpus_per_node)), isolate)

    def _labels(self) -> Sequence[str]:
        return (self._numbers.labels if self._rows is None else self._rows.node_groups) or ("cluster",)

    def _even_cluster(self, num_nodes: Any, per_node: Any) -> bytes:
        """Equal nodes; as many as the ranks reach over where the older form names none."""
        per_node = as_count("num_gpus_per_node", per_node)
        if num_nodes is None:
            last = self._numbers.last_rank
            num_nodes = (last if self._ranks_are_nodes else last // max(per_node, 1)) + 1
        return even_spec("num_nodes_in_cluster", num_nodes, per_node)

    def _place(self, cluster: _roost.Cluster, isolate: bool) -> _roost.Placements:
        isolate = isolate and self._isolates
        if self._rows is not None and cluster is self._planned_on and isolate == self._rows.isolate_accelerator:
            return self._rows
        return self._numbers.place(cluster, isolate)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or (
            self._isolates == other._isolates and self._numbers.arguments == other._numbers.arguments
        )

    def __hash__(self) -> int:
        return hash((type(self), self._numbers.last_rank))

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name not in ("_rows", "_planned_on", "_made")}
        return state | {"_arguments": self._numbers.arguments}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._made = getattr(_roost.Strategy, self._kind)(*vars(self).pop("_arguments"))

    def __repr__(self) -> str:
        *values, labels = self._numbers.arguments
        words = [f"{name}={reprlib.repr(value)}" for name, value in zip(self._words, values)]
        words += [f"{self._words[-1]}={(labels[0] if len(labels) == 1 else list(labels))!r}"] if labels else []
        return f"{type(self).__name__}({', '.join(words)})"


def name_arguments(arguments: tuple[Any, ...], words: dict[str, Any]) -> dict[str, Any]:
    """The words with the arguments of get_placement that came without names: a cluster first, or one or two numbers."""
    if not arguments or not is_int(arguments[0]):
        names = ["cluster", "isolate_accelerator"]
    elif len(arguments) > 1 and arguments[1] is not None and not is_bool(arguments[1]):
        names = ["num_nodes_in_cluster", "num_gpus_per_node", "isolate_gpu"]
    elif words["num_gpus_per_node"] is not None:
        names = ["num_nodes_in_cluster", "isolate_gpu"]
    else:
        names = ["num_gpus_per_node", "isolate_gpu"]
    if len(arguments) > len(names):
        raise TypeError(f"get_placement takes {', '.join(names)}, not {len(arguments)} arguments without names")
    for name, value in zip(names, arguments):
        if words[name] is not None:
            raise TypeError(f"{name} is given twice: {value!r} and {words[name]!r}")
        words[name] = value
    return words


def read_isolation(isolate_accelerator: Any, isolate_gpu: Any) -> bool:
    name = "isolate_accelerator" if isolate_gpu is None else "isolate_gpu"
    return as_bool(name, choose("isolate_accelerator", isolate_accelerator, "isolate_gpu", isolate_gpu, True))


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

    _kind = "packed"
    _words = ("start_hardware_rank", "end_hardware_rank", "num_hardware_per_process", "stride", "node_group")

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
        self._made = _roost.Strategy.packed(
            choose("start_hardware_rank", start_hardware_rank, "start_gpu_id", start_gpu_id),
            choose("end_hardware_rank", end_hardware_rank, "end_gpu_id", end_gpu_id),
            choose(
                "num_hardware_per_process", num_hardware_per_process, "num_gpus_per_process", num_gpus_per_process, 1
            ),
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

    _kind = "flexible"
    _words = ("hardware_ranks_list", "node_group_label")

    def __init__(self, hardware_ranks_list: Sequence[Sequence[int]], node_group_label: Labels = None) -> None:
        self._made = _roost.Strategy.flexible(hardware_ranks_list, label_list(node_group_label))


class NodePlacementStrategy(PlacementStrategy):
    """Puts processes on nodes, whatever hardware these have.

    >>> from roost import Cluster, NodePlacementStrategy
    >>> cluster = Cluster(num_nodes=1, num_gpus_per_node=0)
    >>> placement = NodePlacementStrategy([0] * 4)
    >>> [(p.rank, p.cluster_node_rank, p.local_world_size) for p in placement.get_placement(cluster)]
    [(0, 0, 4), (1, 0, 4), (2, 0, 4), (3, 0, 4)]
    """

    _kind = "node"
    _words = ("node_ranks", "node_group_label")
    _ranks_are_nodes = True

    def __init__(self, node_ranks: Sequence[int], node_group_label: Labels = None) -> None:
        self._made = _roost.Strategy.node(node_ranks, label_list(node_group_label))
