"""What a Cluster answers with, what strategies and placements look like, and what can be pickled."""

import copy
import pickle
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from roost import (
    Cluster,
    ComponentPlacement,
    FlexiblePlacementStrategy,
    HardwareInfo,
    HardwareResource,
    ModelParallelComponentPlacement,
    NodeGroupInfo,
    NodePlacementStrategy,
    PackedPlacementStrategy,
    Placement,
    PlacementMode,
)

GROUPS = {
    "num_nodes": 2,
    "component_placement": {
        "actor,critic": "0-7:0-3",
        "env": {"node_group": "b,a", "placement": "2-5"},
        "agent": {"node_group": "node", "placement": "0-1:0-4"},
    },
    "node_groups": [{"label": "a", "node_ranks": 0}, {"label": "b", "node_ranks": 1}],
}
CLUSTER = Cluster(cluster_cfg=GROUPS, cluster="2x4")


def test_records_are_the_callers_own() -> None:
    node, group = CLUSTER.get_node_info(0), CLUSTER.get_node_group("a")
    assert group
    node.hardware_resources.clear()
    node.node_labels.append("x")
    group.nodes.clear()
    group.hardware_type = None
    CLUSTER.nodes.clear()
    CLUSTER.node_groups[0].label = "z"
    assert CLUSTER.get_node_info(0).num_accelerators == 4 and CLUSTER.get_node_info(0).node_labels == [
        "a",
        "cluster",
        "node",
    ]
    assert [found.label for found in CLUSTER.node_groups] == ["a", "b", "cluster", "node"] and len(CLUSTER.nodes) == 2
    again = CLUSTER.get_node_group("a")
    assert again and (again.node_ranks, again.hardware_type, again.hardware_resource_count) == ([0], "Accelerator", 4)
    with pytest.raises(AttributeError):
        CLUSTER.get_node_info(0).hardware_resources[0].infos[0].model = "x"  # type: ignore[misc]


@pytest.mark.plain
def test_one_node_of_many_costs_one_node() -> None:
    many = Cluster(cluster=f"{1 << 17}x8")
    started = time.perf_counter()
    assert many.get_node_info(99_999).num_accelerators == 8 and many.num_gpus_per_node == 8
    assert time.perf_counter() - started < 0.1


@pytest.mark.plain
def test_plans_are_compared_by_their_columns() -> None:
    cluster, strategy = Cluster(cluster=f"{1 << 17}x8"), PackedPlacementStrategy(0, (1 << 20) - 1)
    one, other, shared = (
        strategy.get_placement(cluster),
        strategy.get_placement(cluster),
        strategy.get_placement(cluster, False),
    )
    started = time.perf_counter()
    assert one == other
    assert time.perf_counter() - started < 0.3
    assert one != shared and one != strategy.get_placement(Cluster(cluster=f"{1 << 17}x8 AMD"))


def test_equal_plans_have_equal_rows() -> None:
    """By columns, by rows and by the fields one gets the same answer."""
    specs, strategies = (
        ("2x4", "1x4,1x2", "2x4 AMD", "1x8"),
        (
            PackedPlacementStrategy(0, 3),
            PackedPlacementStrategy(0, 3, 2),
            PackedPlacementStrategy(0, 3, 2, 2),
            NodePlacementStrategy([0] * 4),
        ),
    )
    plans = [
        strategy.get_placement(Cluster(cluster=spec), isolate)
        for spec in specs
        for strategy in strategies
        for isolate in (True, False)
    ]
    for one in plans:
        for other in plans:
            fields = [row.__reduce__()[1] for row in one] == [row.__reduce__()[1] for row in other]
            assert (one == other) == (list(one) == list(other)) == fields == (not one != other)
    assert PackedPlacementStrategy(0, 3, 4).get_placement(Cluster(cluster="1x4")) != PackedPlacementStrategy(
        0, 3, 4
    ).get_placement(Cluster(cluster="1x4"), False)


def test_everything_has_a_repr() -> None:
    assert (
        repr(PackedPlacementStrategy(0, 3, 2))
        == "PackedPlacementStrategy(start_hardware_rank=0, end_hardware_rank=3, num_hardware_per_process=2, stride=1)"
    )
    assert (
        repr(FlexiblePlacementStrategy([[0, 1], [2]], "a"))
        == "FlexiblePlacementStrategy(hardware_ranks_list=[[0, 1], [2]], node_group_label='a')"
    )
    assert (
        repr(NodePlacementStrategy(range(99), ["a", "b"]))
        == "NodePlacementStrategy(node_ranks=[0, 1, 2, 3, 4, 5, ...], node_group_label=['a', 'b'])"
    )
    placement = ComponentPlacement({"cluster": GROUPS}, CLUSTER)
    assert repr(placement) == "<roost.ComponentPlacement: actor: 4, critic: 4, env: 4, agent: 5>"
    assert (
        repr(placement.get_strategy("env"))
        == "FlexiblePlacementStrategy(hardware_ranks_list=[[2], [3], [4], [5]], node_group_label=['b', 'a'])"
    )
    rows = PackedPlacementStrategy(0, 3).get_placement(CLUSTER)
    assert repr(rows.column("local_rank")) == "<roost.Column local_rank: 4 x int32>"
    assert repr(rows.column("accelerator_type")) == "<roost.Column accelerator_type: 4 x uint8>"


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize(
    "strategy",
    [
        PackedPlacementStrategy(0, 3, 2, 2),
        PackedPlacementStrategy(2, 5, node_group=["b", "a"]),
        FlexiblePlacementStrategy([[3], [1, 0]]),
        NodePlacementStrategy([1, 0, 1], "node"),
    ],
    ids=repr,
)
def test_strategies_can_be_pickled(strategy: roost.PlacementStrategy) -> None:
    for twin in (again(strategy), copy.copy(strategy), copy.deepcopy(strategy)):
        assert type(twin) is type(strategy) and repr(twin) == repr(strategy)
        assert twin.get_placement(CLUSTER) == strategy.get_placement(CLUSTER)
        assert twin.get_placement(CLUSTER, False) == strategy.get_placement(CLUSTER, False)


def test_component_placements_can_be_pickled() -> None:
    placement = ComponentPlacement({"cluster": GROUPS}, CLUSTER)
    twin = again(placement)
    assert twin.components == placement.components and twin.get_strategy("actor") is twin.get_strategy("critic")
    for name in placement.components:
        assert twin.get_strategy(name).get_placement(CLUSTER) == placement.get_strategy(name).get_placement(CLUSTER)
        assert twin.get_hardware_ranks(name) == placement.get_hardware_ranks(name)
        assert twin.get_world_size(name) == placement.get_world_size(name)


def test_what_cannot_be_pickled_says_what_can() -> None:
    rows = PackedPlacementStrategy(0, 3).get_placement(CLUSTER)
    for value, words in (
        (rows, "pickle the strategy that made them, or list"),
        (rows.column("local_rank"), "numpy.array"),
        (CLUSTER, "make it again where it is needed"),
    ):
        with pytest.raises(TypeError, match=words):
            pickle.dumps(value)
    assert again(list(rows)) == rows


def test_a_subclass_keeps_its_own_when_pickled() -> None:
    strategy = Named(0, 3)
    strategy.title = "mine"
    assert again(strategy).title == "mine" and again(strategy).get_placement(CLUSTER) == strategy.get_placement(CLUSTER)


class Named(PackedPlacementStrategy):
    title = ""


def test_the_type_of_placements_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        Placement.rank = 5  # type: ignore[misc, assignment]
    with pytest.raises(TypeError):
        Placement.extra = 5  # type: ignore[attr-defined]
    match PackedPlacementStrategy(0, 3).get_placement(CLUSTER):
        case [first, *rest]:
            assert first.rank == 0 and len(rest) == 3
        case _:
            pytest.fail("placements are a sequence")


def counting(cluster: Cluster) -> Any:
    asked: list[str] = []
    return SimpleNamespace(
        get_node_group=lambda label: asked.append(label) or cluster.get_node_group(label),
        get_node_info=cluster.get_node_info,
        asked=asked,
    )


def test_a_strategy_of_a_config_is_alone() -> None:
    """It places its own component: faults and groups of the others are not its business."""
    placement = ComponentPlacement({"cluster": GROUPS}, CLUSTER)
    own = counting(CLUSTER)
    assert placement.get_strategy("env").get_placement(own) == placement.get_strategy("env").get_placement(CLUSTER)
    assert own.asked == ["b", "a"]
    small = Cluster(cluster="3x2")  # has no group a or b, and too few accelerators for the actor
    assert [p.local_rank for p in placement.get_strategy("agent").get_placement(small)] == [0, 1, 2, 0, 1]
    with pytest.raises(roost.RankError, match="out of range"):
        placement.get_strategy("actor").get_placement(small)
    with pytest.raises(roost.Error, match="there is no node group 'b'"):
        placement.get_strategy("env").get_placement(small)


def test_all_is_what_it_was_when_it_was_planned() -> None:
    placement = ComponentPlacement({"cluster": {"component_placement": {"actor": "all"}}}, Cluster(cluster="1x4"))
    assert (
        len(placement.get_strategy("actor").get_placement(Cluster(cluster="2x4")))
        == 4
        == placement.get_world_size("actor")
    )


def test_components_that_share_their_accelerators_go_on_sharing() -> None:
    config = {
        "cluster": {"num_nodes": 1, "component_placement": {"actor": "0-1"}},
        "roost": {"launch": {"actor": {"command": ["a"], "isolate": False}}},
    }
    strategy = ComponentPlacement(config, Cluster(cluster="1x4")).get_strategy("actor")
    for cluster in (Cluster(cluster="1x4"), Cluster(cluster="1x3")):
        assert (
            not any(p.isolate_accelerator for p in again(strategy).get_placement(cluster))
            and len(strategy.get_placement(cluster)) == 2
        )


def test_hardware_of_a_described_node_may_come_from_a_generator() -> None:
    group = SimpleNamespace(node_ranks=iter([0]), hardware_type="Franka")
    node = SimpleNamespace(
        num_accelerators=0,
        accelerator_type="NO_ACCEL",
        hardware_resources=(HardwareResource("Franka", [HardwareInfo("Franka")] * 2) for _ in range(1)),
    )
    rows = FlexiblePlacementStrategy([[0], [1]]).get_placement(
        SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: node)
    )
    assert [row.local_hardware_ranks for row in rows] == [[0], [1]]


def test_a_group_without_nodes_has_no_ranks() -> None:
    group = NodeGroupInfo("none")
    assert (group.hardware_type, group.hardware_resource_count, group.node_ranks) == (None, 0, [])
    with pytest.raises(roost.RankError, match="hardware_rank 0 is out of range: node group 'none' has 0 ranks"):
        group.get_node_by_hardware_rank(0)


CRITIC = {
    "cluster": {
        "num_nodes": 1,
        "component_placement": {
            "actor": "0-1",
            "rollout": "2-3",
            "inference": "4-5",
            "critic": 6,
            "critic_inference": 7,
            "reward": "0-1",
        },
    },
    "algorithm": {"recompute_logprobs": True},
}


def test_the_actors_inference_has_its_full_name_beside_the_critics() -> None:
    placement = ModelParallelComponentPlacement(CRITIC, Cluster(cluster="1x8"))
    assert placement.get_strategy("actor_inference") is placement.get_strategy("inference")
    assert placement.get_world_size("actor_inference") == 2 and placement.get_hardware_ranks("actor_inference") == [
        4,
        5,
    ]
    assert placement.components == list(CRITIC["cluster"]["component_placement"])  # type: ignore[arg-type]
    twin = again(placement)
    assert twin.placement_mode is PlacementMode.DISAGGREGATED and twin.critic_inference_world_size == 1
    assert twin.get_strategy("actor_inference") is twin.get_strategy("inference")
    with pytest.raises(AssertionError, match="'actor_inference' is not placed"):
        ComponentPlacement(CRITIC, Cluster(cluster="1x8")).get_strategy("actor_inference")


def test_sizes_cannot_be_assigned() -> None:
    placement = ModelParallelComponentPlacement(CRITIC, Cluster(cluster="1x8"))
    for name in (
        "actor_world_size",
        "rollout_tp_size",
        "critic_inference_dp_size",
        "reward_world_size",
        "has_dedicated_inference",
        "is_auto",
    ):
        with pytest.raises(AttributeError):
            setattr(placement, name, 5)
    assert (placement.actor_world_size, placement.has_dedicated_critic_inference) == (2, True)


def test_examples_of_pickling_reach_another_process(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = tmp_path / "strategy.pickle"
    path.write_bytes(pickle.dumps(ComponentPlacement({"cluster": GROUPS}, CLUSTER).get_strategy("actor")))
    code = f"import pickle, roost; print([p.local_hardware_ranks for p in pickle.load(open({str(path)!r}, 'rb')).get_placement(roost.Cluster(cluster='2x4'))])"
    assert (
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        == "[[0, 1], [2, 3], [0, 1], [2, 3]]\n"
    )
