"""The strategy classes: tables of placements through Python, and what Python itself must
get right: arguments, older forms, the caller's lists."""

import copy
import pickle

import pytest

import roost
from roost import (
    AcceleratorType,
    Cluster,
    FlexiblePlacementStrategy,
    NodePlacementStrategy,
    PackedPlacementStrategy,
    Placement,
)


def brief(placements: roost.Placements) -> str:
    """Node and accelerators of every process: `n0 0,1 ; n1 0`."""
    return " ; ".join(f"n{p.cluster_node_rank} {','.join(p.visible_accelerators)}" for p in placements)


GROUPS = {
    "num_nodes": 2,
    "component_placement": {},
    "node_groups": [{"label": "a", "node_ranks": 0}, {"label": "b", "node_ranks": 1}],
}


def two_nodes(per_node: int = 4) -> Cluster:
    return Cluster(cluster_cfg=GROUPS, num_gpus_per_node=per_node)


@pytest.mark.parametrize(
    ("arguments", "spec", "expected"),
    [
        ((0, 3), "1x4", "n0 0 ; n0 1 ; n0 2 ; n0 3"),
        ((0, 3, 2), "1x4", "n0 0,1 ; n0 2,3"),
        ((0, 3, 2, 2), "1x4", "n0 0,2 ; n0 1,3"),
        ((0, 7, 2, 2), "1x8", "n0 0,2 ; n0 1,3 ; n0 4,6 ; n0 5,7"),
        ((2, 5), "2x4", "n0 2 ; n0 3 ; n1 0 ; n1 1"),
        ((1, 6, 3), "2x4", "n0 1,2,3 ; n1 0,1,2"),
        ((0, 3), "1x2,1x0,1x2", "n0 0 ; n0 1 ; n2 0 ; n2 1"),
    ],
)
def test_packed_places_its_processes(arguments: tuple, spec: str, expected: str) -> None:
    assert brief(PackedPlacementStrategy(*arguments).get_placement(Cluster(cluster=spec))) == expected


def test_packed_goes_through_groups_in_the_order_given() -> None:
    strategy = PackedPlacementStrategy(2, 5, node_group=["b", "a"])
    assert brief(strategy.get_placement(two_nodes())) == "n1 2 ; n1 3 ; n0 0 ; n0 1"


@pytest.mark.parametrize(
    ("lists", "spec", "expected"),
    [
        ([[0, 1], [2], [3]], "1x4", "n0 0,1 ; n0 2 ; n0 3"),
        ([[3], [1, 0], [2]], "1x4", "n0 0,1 ; n0 2 ; n0 3"),
        ([[2, 1, 3]], "1x4", "n0 1,2,3"),
        ([[4], [0], [5, 6]], "2x4", "n0 0 ; n1 0 ; n1 1,2"),
        ([[0], [0]], "1x4", "n0 0 ; n0 0"),
    ],
)
def test_flexible_places_its_processes(lists: list, spec: str, expected: str) -> None:
    before = copy.deepcopy(lists)
    assert brief(FlexiblePlacementStrategy(lists).get_placement(Cluster(cluster=spec))) == expected
    assert lists == before  # the caller's lists are never changed


@pytest.mark.parametrize(
    ("ranks", "spec", "expected"),
    [
        ([0] * 4, "1x0", "n0  ; n0  ; n0  ; n0 "),
        ([1, 0, 1], "2x2", "n0 0,1 ; n1 0,1 ; n1 0,1"),
        ([0, 1, 1, 2], "3x1", "n0 0 ; n1 0 ; n1 0 ; n2 0"),
    ],
)
def test_node_places_its_processes(ranks: list, spec: str, expected: str) -> None:
    before = list(ranks)
    assert brief(NodePlacementStrategy(ranks).get_placement(Cluster(cluster=spec))) == expected
    assert ranks == before


def test_node_takes_one_label_or_a_sequence() -> None:
    for labels in (["a", "b"], ("a", "b")):
        placements = NodePlacementStrategy([0, 1], labels).get_placement(two_nodes(1))
        assert [p.node_group_label for p in placements] == ["a", "b"]
    [placement] = NodePlacementStrategy([0], "b").get_placement(two_nodes(1))
    assert (placement.cluster_node_rank, placement.placement_node_rank) == (1, 0)


def test_a_placement_has_eleven_fields_and_the_older_names() -> None:
    placement = PackedPlacementStrategy(2, 5, 2).get_placement(two_nodes())[1]
    assert repr(placement) == (
        "Placement(rank=1, cluster_node_rank=1, placement_node_rank=1, local_accelerator_rank=0, "
        "accelerator_type=<AcceleratorType.NV_GPU: 'NV_GPU'>, local_rank=0, local_world_size=1, "
        "visible_accelerators=['0', '1'], isolate_accelerator=True, local_hardware_ranks=[0, 1], node_group_label='cluster')"
    )
    assert placement.accelerator_type is AcceleratorType.NV_GPU
    old = (
        placement.node_id,
        placement.node_rank,
        placement.local_gpu_id,
        placement.cuda_visible_devices,
        placement.isolate_gpu,
    )
    assert old == (1, 1, 0, ["0", "1"], True)
    with pytest.raises(AttributeError):
        placement.rank = 5  # type: ignore[misc]


def test_without_isolation_a_process_sees_its_node_and_keeps_its_own_first() -> None:
    placements = PackedPlacementStrategy(0, 3, 2).get_placement(Cluster(cluster="1x4"), isolate_accelerator=False)
    assert [(p.visible_accelerators, p.local_accelerator_rank) for p in placements] == [
        (["0", "1", "2", "3"], 0),
        (["0", "1", "2", "3"], 2),
    ]


def test_older_forms_mean_what_they_meant() -> None:
    today = PackedPlacementStrategy(8, 11, 2).get_placement(Cluster(cluster="2x8"))
    old = PackedPlacementStrategy(start_gpu_id=8, end_gpu_id=11, num_gpus_per_process=2)
    assert old.get_placement(8, True) == today
    assert old.get_placement(2, 8) == today
    assert old.get_placement(2, 8, True) == today
    assert old.get_placement(num_gpus_per_node=8) == today
    assert old.get_placement(num_nodes_in_cluster=2, num_gpus_per_node=8, isolate_gpu=True) == today
    assert old.get_placement(2, 8, False) == PackedPlacementStrategy(8, 11, 2).get_placement(
        Cluster(cluster="2x8"), False
    )
    assert len(NodePlacementStrategy([0, 3]).get_placement(8, True)) == 2
    with pytest.raises(roost.Error, match="out of range"):
        old.get_placement(1, 8)
    with pytest.raises(TypeError, match="older name of start_hardware_rank"):
        PackedPlacementStrategy(0, 3, start_gpu_id=0)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: PackedPlacementStrategy(-1, 2), "start_hardware_rank -1 and end_hardware_rank 2 are not a range"),
        (lambda: PackedPlacementStrategy(3, 1), "not a range"),
        (lambda: PackedPlacementStrategy(0, 3, 0), "num_hardware_per_process 0 and stride 1: both must be at least 1"),
        (lambda: PackedPlacementStrategy(0, 3, 1, -1), "at least 1"),
        (
            lambda: PackedPlacementStrategy(0, 3, stride=5),
            "not a multiple of num_hardware_per_process 1 times stride 5",
        ),
        (lambda: FlexiblePlacementStrategy([]), "hardware_ranks_list must not be empty"),
        (lambda: FlexiblePlacementStrategy([[]]), r"hardware_ranks_list\[0\] must not be empty"),
        (lambda: FlexiblePlacementStrategy([[-1]]), r"rank -1 in hardware_ranks_list\[0\] is out of range"),
        (lambda: NodePlacementStrategy([]), "node_ranks must not be empty"),
        (lambda: NodePlacementStrategy([-1]), r"node rank -1 in node_ranks\[0\] is out of range"),
    ],
)
def test_a_strategy_that_cannot_be_right_is_refused_when_it_is_made(build, words: str) -> None:
    for kind in (ValueError, AssertionError, IndexError, roost.RankError):
        with pytest.raises(kind, match=words):
            build()


@pytest.mark.parametrize(
    ("strategy", "spec", "words"),
    [
        (FlexiblePlacementStrategy([[0, 4]]), "2x4", "same node"),
        (FlexiblePlacementStrategy([[0], [8]]), "2x4", "out of range"),
        (FlexiblePlacementStrategy([[0, 0]]), "1x4", "must be unique"),
        (FlexiblePlacementStrategy([[0]]), "1x0", "needs hardware"),
        (PackedPlacementStrategy(0, 7, 8), "2x4", "same node"),
        (PackedPlacementStrategy(3, 4, 2), "2x4", "same node"),
        (PackedPlacementStrategy(4, 7), "1x4", "out of range"),
        (PackedPlacementStrategy(0, 0, node_group="node"), "1x4", "needs hardware"),
        (PackedPlacementStrategy(0, 0, node_group="a800"), "1x4", "there is no node group 'a800'"),
        (NodePlacementStrategy([0, 2]), "2x4", "out of range"),
    ],
)
def test_what_does_not_fit_is_said_when_it_is_placed(strategy: roost.PlacementStrategy, spec: str, words: str) -> None:
    with pytest.raises(roost.Error, match=words) as caught:
        strategy.get_placement(Cluster(cluster=spec))
    assert caught.value.code in {"fit", "rank", "hardware", "reference"}
    if caught.value.code in {"fit", "rank"}:
        assert isinstance(caught.value, IndexError)


def test_an_exception_of_the_caller_passes_through() -> None:
    class Odd:
        def __index__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NodePlacementStrategy([Odd()])  # type: ignore[list-item]


def test_placements_are_a_sequence() -> None:
    placements = PackedPlacementStrategy(0, 3).get_placement(Cluster(cluster="1x4"))
    assert len(placements) == 4
    assert [p.rank for p in placements[1:3]] == [1, 2]
    assert [p.rank for p in placements[::-2]] == [3, 1]
    assert placements[-1].rank == 3
    assert placements == list(placements) and list(placements) == placements
    assert placements != list(placements)[:3] and placements != "text" and placements[0] != placements[1]
    assert placements[0] in placements
    with pytest.raises(IndexError):
        placements[4]
    with pytest.raises(IndexError):
        placements[2**70]
    with pytest.raises(TypeError):
        placements["0"]  # type: ignore[call-overload]
    assert repr(placements) == "<roost.Placements: 4 processes, packed>"


def test_a_placement_can_be_made_copied_and_pickled() -> None:
    row = PackedPlacementStrategy(0, 3, 2).get_placement(Cluster(cluster="1x4"))[1]
    made = Placement(
        rank=1,
        cluster_node_rank=0,
        placement_node_rank=0,
        local_accelerator_rank=2,
        accelerator_type=AcceleratorType.NV_GPU,
        local_rank=1,
        local_world_size=2,
        visible_accelerators=["2", "3"],
        isolate_accelerator=True,
        local_hardware_ranks=[2, 3],
        node_group_label="cluster",
    )
    assert made == row == copy.deepcopy(made) == pickle.loads(pickle.dumps(row))
    made.visible_accelerators.append("4")
    assert made.visible_accelerators == ["2", "3"]
    with pytest.raises(TypeError, match="local_hardware_ranks must be"):
        Placement(1, 0, 0, 2, AcceleratorType.NV_GPU, 1, 2, ["2"], True, "23", "cluster")
    with pytest.raises(TypeError, match="accelerator_type must be"):
        Placement(1, 0, 0, 2, "GPU", 1, 2, ["2"], True, [2], "cluster")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Placement(1)  # type: ignore[call-arg]


def test_strategies_of_the_same_numbers_are_equal() -> None:
    again = [
        (
            PackedPlacementStrategy(0, 3, 2),
            PackedPlacementStrategy(start_gpu_id=0, end_gpu_id=3, num_gpus_per_process=2, stride=1),
        ),
        (FlexiblePlacementStrategy([[0, 1], [2]], "a"), FlexiblePlacementStrategy(((0, 1), (2,)), ["a"])),
        (NodePlacementStrategy([0, 0, 1]), NodePlacementStrategy((0, 0, 1))),
    ]
    for one, other in again:
        assert one == other and hash(one) == hash(other) and one == pickle.loads(pickle.dumps(one)) and not one != other
    different = [one for one, _ in again]
    different += [
        PackedPlacementStrategy(0, 3),
        PackedPlacementStrategy(0, 3, 2, 2),
        PackedPlacementStrategy(0, 3, 2, node_group="a"),
    ]
    different += [FlexiblePlacementStrategy([[0, 1], [2]]), NodePlacementStrategy([0, 1])]
    assert len(set(different)) == len(different)
    assert PackedPlacementStrategy(0, 3) != "packed"
    config = {"cluster": {"num_nodes": 1, "component_placement": {"actor": "0-3"}}}
    cluster = Cluster(cluster="1x8")
    assert roost.ComponentPlacement(config, cluster).get_strategy("actor") == roost.ComponentPlacement(
        config, cluster
    ).get_strategy("actor")
