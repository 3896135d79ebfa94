"""Clusters that other objects describe, and the records they are described with."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import roost
from roost import (
    Accelerator,
    AcceleratorType,
    Cluster,
    ComponentPlacement,
    FlexiblePlacementStrategy,
    HardwareInfo,
    HardwareResource,
    NodeGroupEnvConfig,
    NodeGroupInfo,
    NodeInfo,
    NodePlacementStrategy,
    PackedPlacementStrategy,
)
from roost.slime import get_engine_layout


def make_nodes(*counts: int, model: str = "NV_GPU:A800") -> list[NodeInfo]:
    return [
        NodeInfo(
            node_labels=["cluster"],
            node_rank=rank,
            ray_id=f"id{rank}",
            node_ip=f"10.0.0.{rank}",
            num_cpus=4,
            python_interpreter_path="/usr/bin/python3",
            default_env_vars={},
            env_vars={},
            hardware_resources=[
                HardwareResource(
                    type=Accelerator.HW_TYPE, infos=[HardwareInfo(type=Accelerator.HW_TYPE, model=model)] * count
                )
            ],
        )
        for rank, count in enumerate(counts)
    ]


class OwnCluster:
    """The least that can stand for a cluster; counts what it is asked."""

    def __init__(self, nodes: list[NodeInfo], *groups: NodeGroupInfo) -> None:
        self.nodes = nodes
        self.groups = {
            "cluster": NodeGroupInfo(label="cluster", nodes=nodes),
            "node": NodeGroupInfo(label="node", nodes=nodes, ignore_hardware=True),
        }
        self.groups |= {group.label: group for group in groups}
        self.asked: list[Any] = []

    @property
    def num_accelerators(self) -> int:
        return sum(node.num_accelerators for node in self.nodes)

    def get_node_info(self, node_rank: int) -> NodeInfo:
        self.asked.append(node_rank)
        return self.nodes[node_rank]

    def get_node_group(self, label: str | None = None) -> NodeGroupInfo | None:
        self.asked.append(label)
        return self.groups.get(label or "cluster")


def test_a_described_cluster_plans_like_a_spec() -> None:
    own, ours = OwnCluster(make_nodes(4, 4)), Cluster(cluster="2x4")
    for strategy in (
        PackedPlacementStrategy(2, 5),
        FlexiblePlacementStrategy([[4], [0], [5, 6]]),
        NodePlacementStrategy([1, 0, 1]),
    ):
        for isolate in (True, False):
            assert strategy.get_placement(own, isolate) == strategy.get_placement(ours, isolate)


def test_it_is_read_once_at_the_call() -> None:
    own = OwnCluster(make_nodes(4, 4))
    strategy = PackedPlacementStrategy(0, 7)
    assert own.asked == []
    placements = strategy.get_placement(own)
    assert sorted(map(str, own.asked)) == ["0", "1", "cluster"]
    own.nodes = make_nodes(1)
    own.groups["cluster"] = NodeGroupInfo("cluster", own.nodes)
    assert len(placements) == 8 and placements[7].cluster_node_rank == 1
    with pytest.raises(roost.Error, match="out of range"):
        strategy.get_placement(own)


def test_a_mock_can_stand_for_a_cluster() -> None:
    nodes = make_nodes(8, 8)
    mock = MagicMock()
    mock.get_node_info.side_effect = nodes.__getitem__
    mock.get_node_group.side_effect = lambda label=None: NodeGroupInfo(
        label=label, nodes=nodes, hardware_type=Accelerator.HW_TYPE
    )
    assert [p.cluster_node_rank for p in PackedPlacementStrategy(6, 9, 2).get_placement(mock)] == [0, 1]


def test_an_object_may_hand_questions_on() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Any:
            return getattr(OwnCluster(make_nodes(4, 4)), name)

    assert len(PackedPlacementStrategy(0, 7).get_placement(Proxy())) == 8


def test_plain_objects_can_stand_for_nodes_and_groups() -> None:
    node = SimpleNamespace(num_accelerators=2, accelerator_type="AMD_GPU")
    group = SimpleNamespace(node_ranks=[3], hardware_type="Accelerator")
    cluster = SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: node)
    [placement] = FlexiblePlacementStrategy([[0, 1]]).get_placement(cluster)
    assert (placement.cluster_node_rank, placement.placement_node_rank, placement.accelerator_type) == (
        3,
        0,
        AcceleratorType.AMD_GPU,
    )


def test_groups_and_robots_of_a_described_cluster() -> None:
    nodes = make_nodes(4, 0)
    nodes[1].hardware_resources.append(HardwareResource("Franka", [HardwareInfo("Franka", "Franka")] * 2))
    own = OwnCluster(nodes, NodeGroupInfo(label="arms", nodes=[nodes[1]], hardware_type="Franka"))
    placement = ComponentPlacement(
        {"cluster": {"component_placement": {"actor": "all", "env": {"node_group": "arms", "placement": "0-1:0-3"}}}},
        own,
    )
    rows = placement.get_strategy("env").get_placement(own)
    assert [(p.cluster_node_rank, p.local_hardware_ranks, p.node_group_label) for p in rows] == [
        (1, [0], "arms")
    ] * 2 + [(1, [1], "arms")] * 2
    assert placement.get_world_size("actor") == 4
    with pytest.raises(AssertionError, match="there is no node group 'legs'"):
        ComponentPlacement({"cluster": {"component_placement": {"env": {"node_group": "legs", "placement": 0}}}}, own)


def test_the_group_node_counts_nodes_whatever_is_said() -> None:
    own = OwnCluster(make_nodes(4, 4), NodeGroupInfo(label="node", nodes=make_nodes(4, 4), hardware_type="Accelerator"))
    with pytest.raises(AssertionError, match="needs hardware"):
        PackedPlacementStrategy(0, 1, node_group="node").get_placement(own)
    own.asked.clear()
    assert len(NodePlacementStrategy([0, 1], "node").get_placement(own)) == 2
    assert "cluster" not in own.asked  # only what is named is asked for


def test_what_cannot_be_a_cluster_is_refused() -> None:
    strategy = NodePlacementStrategy([0])
    with pytest.raises(TypeError, match="cluster must be a Cluster or have get_node_group"):
        strategy.get_placement(object())
    with pytest.raises(roost.Error, match="there is no node group 'cluster'") as caught:
        strategy.get_placement(SimpleNamespace(get_node_group=lambda label: None, get_node_info=lambda rank: None))
    assert caught.value.code == "reference"
    empty = SimpleNamespace(node_ranks=[], hardware_type=None)
    with pytest.raises(roost.Error, match="describes no nodes"):
        strategy.get_placement(SimpleNamespace(get_node_group=lambda label: empty, get_node_info=lambda rank: None))
    group = SimpleNamespace(node_ranks=[-1], hardware_type=None)
    node = SimpleNamespace(num_accelerators=0, accelerator_type="NO_ACCEL")
    with pytest.raises(roost.Error):
        strategy.get_placement(SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: node))
    group.node_ranks, node.accelerator_type = [0], "TPU"
    with pytest.raises(TypeError, match="accelerator_type"):
        strategy.get_placement(SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: node))
    node.accelerator_type, node.num_accelerators = "NV_GPU", "many"
    with pytest.raises(TypeError, match="num_accelerators of node 0 must be an int"):
        strategy.get_placement(SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: node))


def test_a_group_numbers_its_units() -> None:
    nodes = make_nodes(2, 0, 4)
    group = NodeGroupInfo(label="all", nodes=nodes[::-1])
    assert (group.hardware_type, group.hardware_resource_count, group.node_ranks) == ("Accelerator", 6, [0, 1, 2])
    assert [group.get_node_by_hardware_rank(rank).node_rank for rank in range(6)] == [0, 0, 2, 2, 2, 2]
    assert [group.get_local_hardware_rank(rank) for rank in range(6)] == [0, 1, 0, 1, 2, 3]
    with pytest.raises(IndexError, match="out of range"):
        group.get_node_by_hardware_rank(6)
    with pytest.raises(AssertionError):
        group.get_local_hardware_rank(-1)
    group.hardware_type = None
    assert (group.hardware_resource_count, group.get_node_by_hardware_rank(1).node_rank) == (3, 1)
    assert NodeGroupInfo("cpu", nodes, ignore_hardware=True).hardware_type is None


def test_env_configs_of_a_group() -> None:
    env = [
        NodeGroupEnvConfig(node_ranks=[0], env_vars=[{"A": 1}, {"B": None}], python_interpreter_path="/py"),
        NodeGroupEnvConfig([1]),
    ]
    group = NodeGroupInfo(label="a", nodes=make_nodes(1, 1), env_configs=env)
    assert group.get_node_env_vars(0) == {"A": "1", "B": "None"} and group.get_node_env_vars(
        1
    ) == {} == group.get_node_env_vars(5)
    assert group.get_node_python_interpreter_path(0) == "/py" and group.get_node_python_interpreter_path(1) is None


def test_models_name_their_type() -> None:
    assert make_nodes(1, model="NPU:910B")[0].accelerator_type is AcceleratorType.NPU
    assert make_nodes(1, model="A800")[0].accelerator_model == "A800"
    assert make_nodes(0)[0].accelerator_type is AcceleratorType.NO_ACCEL
    with pytest.raises(AssertionError, match="TYPE:MODEL"):
        _ = make_nodes(1, model="NV_GPU:a:b")[0].accelerator_type


def test_our_own_cluster_describes_itself() -> None:
    cfg = {
        "num_nodes": 2,
        "component_placement": {},
        "node_groups": [
            {
                "label": "a800",
                "node_ranks": 0,
                "env_configs": [{"node_ranks": "all", "env_vars": [{"A": True}], "python_interpreter_path": "/py"}],
            },
            {
                "label": "arms",
                "node_ranks": 1,
                "hardware": {"type": "Franka", "configs": [{"node_rank": 1, "robot_ip": "10.0.0.9"}]},
            },
        ],
    }
    cluster = Cluster(cluster_cfg=cfg, cluster="1x8 A800,1x0")
    assert [group.label for group in cluster.node_groups] == ["a800", "arms", "cluster", "node"]
    a800, arms, node = cluster.get_node_group("a800"), cluster.get_node_group("arms"), cluster.get_node_group("node")
    assert a800 and arms and node and cluster.get_node_group("b") is None
    assert a800.get_node_env_vars(0) == {"A": "True"} and a800.get_node_python_interpreter_path(0) == "/py"
    assert (arms.hardware_type, arms.hardware_resource_count) == ("Franka", 1)
    assert (node.hardware_type, node.hardware_resource_count) == (None, 2)
    assert cluster.nodes[1].hardware_resources[0].infos[0].config["robot_ip"] == "10.0.0.9"
    assert cluster.nodes[0].node_labels == ["a800", "cluster", "node"]
    assert cluster.nodes[0].num_accelerators == 8
    with pytest.raises(IndexError, match="out of range"):
        cluster.get_node_info(2)
    with pytest.raises(roost.Error, match="nodes differ"):
        _ = cluster.num_gpus_per_node
    # Described by itself, it is the same cluster.
    mirror = SimpleNamespace(get_node_group=cluster.get_node_group, get_node_info=cluster.get_node_info)
    strategy = FlexiblePlacementStrategy([[0]], "arms")
    assert strategy.get_placement(mirror) == strategy.get_placement(cluster)


def test_cpus_that_its_nodes_know_are_counted_for_placement_groups() -> None:
    args = SimpleNamespace(actor_num_gpus_per_node=4, rollout_num_gpus=4)
    assert get_engine_layout(args, OwnCluster(make_nodes(4, 4, 0))).num_cpus == 10
    with pytest.raises(roost.Error, match="10 CPUs are needed .* but the cluster has 8"):
        get_engine_layout(args, OwnCluster(make_nodes(4, 4)))
    with pytest.raises(roost.Error, match="node 0 has 4 CPUs for the 8 bundles on it"):
        get_engine_layout(args, OwnCluster(make_nodes(8)))
    unknown = make_nodes(8)
    unknown[0].num_cpus = 0
    assert get_engine_layout(args, OwnCluster(unknown)).num_gpus == 8
