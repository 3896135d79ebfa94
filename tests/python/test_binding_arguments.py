"""Arguments: a wrong type is a TypeError, a value that cannot be is a roost.Error; both name it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import roost
from roost import (
    Cluster,
    ClusterConfig,
    ComponentPlacement,
    FlexiblePlacementStrategy,
    NodeGroupInfo,
    NodePlacementStrategy,
    PackedPlacementStrategy,
)

ONE = Cluster(cluster="1x4")
NODE = NodePlacementStrategy([0])
PACKED = PackedPlacementStrategy(0, 3)
CONFIG = {"cluster": {"num_nodes": 1, "component_placement": {"actor": 0}}}


def described(node_ranks: Any = (0,), hardware_type: Any = None, **node: Any) -> SimpleNamespace:
    group = SimpleNamespace(node_ranks=node_ranks, hardware_type=hardware_type)
    info = SimpleNamespace(**({"num_accelerators": 0, "accelerator_type": "NO_ACCEL"} | node))
    return SimpleNamespace(get_node_group=lambda label: group, get_node_info=lambda rank: info)


WRONG_TYPES = [
    (lambda: PackedPlacementStrategy("0", 3), "start_hardware_rank must be an int, not '0'"),
    (lambda: PackedPlacementStrategy(0, 3.0), "end_hardware_rank must be an int"),
    (lambda: PackedPlacementStrategy(0, True), "end_hardware_rank must be an int"),
    (lambda: PackedPlacementStrategy(0), "end_hardware_rank is missing"),
    (lambda: PackedPlacementStrategy(0, 3, start_gpu_id=0), "start_gpu_id is the older name of start_hardware_rank"),
    (lambda: PackedPlacementStrategy(0, 3, node_group=5), "node_group must be a sequence of str, not 5"),
    (lambda: PackedPlacementStrategy(0, 3, node_group=["a", 5]), "node_group must be a sequence of str"),
    (lambda: PackedPlacementStrategy(0, 3, node_group={"a"}), "node_group must be a sequence of str"),
    (lambda: FlexiblePlacementStrategy([[0]], 5), "node_group_label must be a sequence of str, not 5"),
    (lambda: NodePlacementStrategy([0], b"a"), "node_group_label must be a sequence of str"),
    (lambda: FlexiblePlacementStrategy(5), "hardware_ranks_list must be a sequence"),
    (lambda: FlexiblePlacementStrategy([[0], 1]), r"hardware_ranks_list\[1\] must be a sequence of int, not 1"),
    (lambda: FlexiblePlacementStrategy([[0], [1, "2"]]), r"hardware_ranks_list\[1\]\[1\] must be an int, not '2'"),
    (lambda: NodePlacementStrategy(3), "node_ranks must be a sequence of int, not 3"),
    (lambda: NodePlacementStrategy([0, "1"]), r"node_ranks\[1\] must be an int, not '1'"),
    (lambda: NodePlacementStrategy([None]), r"node_ranks\[0\] must be an int, not None"),
    (lambda: NODE.get_placement(), "cluster is missing"),
    (lambda: NODE.get_placement(None), "cluster must be a Cluster"),
    (lambda: NODE.get_placement("1x4"), "cluster must be a Cluster"),
    (lambda: NODE.get_placement(ONE, 2), "isolate_accelerator must be a bool, not 2"),
    (lambda: NODE.get_placement(ONE, isolate_gpu=2), "isolate_gpu must be a bool, not 2"),
    (lambda: NODE.get_placement(num_gpus_per_node="8"), "num_gpus_per_node must be an int, not '8'"),
    (lambda: NODE.get_placement(2, "8"), "num_gpus_per_node must be an int, not '8'"),
    (
        lambda: NODE.get_placement(num_nodes_in_cluster="2", num_gpus_per_node=8),
        "num_nodes_in_cluster must be an int, not '2'",
    ),
    (
        lambda: NODE.get_placement(2, 8, True, False),
        "get_placement takes num_nodes_in_cluster, num_gpus_per_node, isolate_gpu, not 4 arguments",
    ),
    (lambda: NODE.get_placement(ONE, True, False), "get_placement takes cluster, isolate_accelerator, not 3 arguments"),
    (lambda: NODE.get_placement(2, 8, num_gpus_per_node=4), "num_gpus_per_node is given twice: 8 and 4"),
    (
        lambda: NODE.get_placement(ONE, True, isolate_accelerator=False),
        "isolate_accelerator is given twice: True and False",
    ),
    (
        lambda: NODE.get_placement(2, 8, True, isolate_accelerator=False),
        "isolate_gpu is the older name of isolate_accelerator",
    ),
    (lambda: roost.NodeGroupInfo(label=5), "label must be a str, not 5"),
    (lambda: roost.NodeGroupInfo("a", nodes=5), "nodes must be a list, not 5"),
    (lambda: roost.NodeGroupInfo("a", nodes=[5]), r"nodes\[0\] must have 'node_rank', but is 5"),
    (lambda: roost.NodeGroupInfo("a", hardware_type=5), "hardware_type must be a str, not 5"),
    (lambda: roost.NodeInfo(node_rank="x"), "node_rank must be an int, not 'x'"),
    (lambda: roost.NodeInfo(hardware_resources=5), "hardware_resources must be a list, not 5"),
    (lambda: roost.NodeInfo(hardware_resources=[5]), r"hardware_resources\[0\] must have 'type', but is 5"),
    (lambda: roost.HardwareResource("a", 5), "infos must be a list, not 5"),
    (lambda: roost.HardwareResource("a", "b"), "infos must be a list, not 'b'"),
    (lambda: roost.HardwareResource(5), "type must be a str, not 5"),
    (
        lambda: NODE.get_placement(num_nodes_in_cluster=2),
        "num_nodes_in_cluster says nothing of accelerators: pass num_gpus_per_node too",
    ),
    (
        lambda: NODE.get_placement(ONE, num_nodes_in_cluster=2),
        "num_nodes_in_cluster is the older form: pass it or cluster",
    ),
    (lambda: NODE.get_placement(ONE, num_gpus_per_node=2), "num_gpus_per_node is the older form: pass it or cluster"),
    (lambda: Cluster(num_nodes="2"), "num_nodes must be an int, not '2'"),
    (lambda: Cluster(num_nodes=True), "num_nodes must be an int"),
    (lambda: Cluster(num_nodes=2, num_gpus_per_node=1.5), "num_gpus_per_node must be an int"),
    (
        lambda: Cluster(num_gpus_per_node=8),
        "num_gpus_per_node says nothing of how many nodes there are: pass num_nodes or cluster_cfg too",
    ),
    (lambda: Cluster(cluster="1x4", num_gpus_per_node=8), "pass one of them"),
    (lambda: Cluster(cluster_cfg=3), "cluster_cfg must be a path or a mapping, not 3"),
    (lambda: Cluster(cluster=5), "cluster must be a spec, a path or 'local', not 5"),
    (lambda: Cluster(cluster="1x4", timeout="600"), "timeout must be a number of seconds, not '600'"),
    (lambda: Cluster(cluster="1x4", distributed_log_dir=3), "distributed_log_dir must be a path, not 3"),
    (lambda: Cluster(cluster="1x4", namespace=3), "namespace must be a str, not 3"),
    (lambda: Cluster(cluster="1x4", engine=3), "engine must be a str, not 3"),
    (lambda: ONE.get_node_info("0"), "node_rank must be an int, not '0'"),
    (lambda: ONE.get_node_info(1.5), "node_rank must be an int"),
    (lambda: ONE.get_node_group(3), "label must be a str, not 3"),
    (lambda: NodeGroupInfo("a").get_node_by_hardware_rank("0"), "hardware_rank must be an int, not '0'"),
    (lambda: ComponentPlacement(3, ONE), "config must be a path or a mapping, not 3"),
    (lambda: ComponentPlacement(CONFIG, ONE).get_strategy(["actor"]), "component_name must be a str"),
    (lambda: ClusterConfig.from_dict_cfg("train.yaml"), "cfg_dict must be a mapping, not 'train.yaml'"),
    (lambda: NODE.get_placement(described(["0"])), r"node_ranks\[0\] of node group 'cluster' must be an int, not '0'"),
    (lambda: NODE.get_placement(described(5)), "node_ranks of node group 'cluster' must be a sequence, not 5"),
    (lambda: NODE.get_placement(described([0], 3)), "hardware_type of node group 'cluster' must be a str, not 3"),
    (lambda: NODE.get_placement(described(num_accelerators="many")), "num_accelerators of node 0 must be an int"),
    (
        lambda: NODE.get_placement(described(accelerator_type="TPU")),
        "accelerator_type of node 0 must be one of NO_ACCEL, NV_GPU",
    ),
    (
        lambda: NODE.get_placement(described(hardware_resources=5)),
        "hardware_resources of node 0 must be a sequence, not 5",
    ),
    (lambda: NODE.get_placement(described(hardware_resources=[5])), "a hardware resource of node 0 must have type"),
    (
        lambda: NODE.get_placement(SimpleNamespace(get_node_group=lambda label: 5, get_node_info=lambda rank: 5)),
        "node group 'cluster' must have node_ranks",
    ),
]


@pytest.mark.parametrize(("call", "words"), WRONG_TYPES)
def test_a_wrong_type_is_named(call: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        call()


WRONG_VALUES = [
    (
        lambda: PackedPlacementStrategy(0, 2**31),
        roost.RankError,
        "end_hardware_rank is out of range: it is larger than 2147483647",
    ),
    (lambda: PackedPlacementStrategy(0, 10**5000), roost.RankError, "end_hardware_rank is out of range"),
    (
        lambda: PackedPlacementStrategy(-(2**80), 0),
        roost.RankError,
        "start_hardware_rank is out of range: it is less than",
    ),
    (lambda: FlexiblePlacementStrategy([[2**40]]), roost.RankError, r"hardware_ranks_list\[0\]\[0\] is out of range"),
    (
        lambda: PackedPlacementStrategy(0, 3, node_group="a\udcff"),
        roost.Error,
        r"node_group must be text that UTF-8 can hold, not 'a\\udcff'",
    ),
    (lambda: NodePlacementStrategy([0], ["a\0"]), roost.Error, "node_group_label must be text without NUL"),
    (lambda: roost.NodeInfo(node_rank=-1), roost.RankError, "node_rank must not be negative"),
    (lambda: NODE.get_placement(-1, True), roost.Error, "num_gpus_per_node must not be negative"),
    (lambda: NODE.get_placement(0, 8), roost.Error, "num_nodes_in_cluster must be at least 1"),
    (lambda: NODE.get_placement(num_gpus_per_node=2**40), roost.Error, "num_gpus_per_node is out of range"),
    (lambda: Cluster(num_nodes=2**70), roost.Error, "num_nodes is out of range"),
    (lambda: Cluster(num_nodes=0, num_gpus_per_node=8), roost.Error, "num_nodes must be at least 1"),
    (lambda: Cluster(num_nodes=-1, cluster="1x4"), roost.Error, "'num_nodes' must be a positive integer"),
    (lambda: Cluster(cluster=""), roost.Error, "cluster must be a spec, a path or 'local', not ''"),
    (lambda: Cluster(cluster="a\0b"), roost.Error, "cluster must be a spec"),
    (lambda: Cluster(cluster="\ud800"), roost.Error, r"cluster must be text that a file name can hold, not '\\ud800'"),
    (lambda: Cluster(cluster_cfg=""), roost.Error, "cluster_cfg must be a path or a mapping, not ''"),
    (lambda: Cluster(cluster="no/such/file"), roost.Error, "no/such/file"),
    (lambda: Cluster(cluster="no/such/\udcff"), roost.Error, "cannot open"),
    (lambda: Cluster(cluster="1x4", timeout=-1), roost.Error, "timeout must be a number of seconds, not -1"),
    (lambda: Cluster(cluster="1x4", timeout=float("nan")), roost.Error, "timeout must be a number of seconds, not nan"),
    (lambda: Cluster(namespace="not-there"), roost.EngineError, "no managers live in namespace 'not-there'"),
    (lambda: Cluster(namespace="not/there"), roost.Error, "'not/there' cannot be a namespace"),
    (lambda: ONE.get_node_info(-1), roost.RankError, "node_rank -1 is out of range: there is 1 node$"),
    (lambda: ONE.get_node_info(2**40), roost.RankError, "node_rank is out of range"),
    (
        lambda: NODE.get_placement(described([-1])),
        roost.RankError,
        r"node_ranks\[0\] of node group 'cluster' must not be negative",
    ),
    (lambda: NODE.get_placement(described([2**20])), roost.RankError, "names node 1048576, which is out of range"),
    (
        lambda: NODE.get_placement(described([1, 0])),
        roost.RankError,
        "the nodes of node group 'cluster' must rise, but 0 comes after 1",
    ),
    (lambda: NODE.get_placement(described([0, 0])), roost.RankError, "must rise, but 0 comes after 0"),
    (
        lambda: NODE.get_placement(described(num_accelerators=2**40)),
        roost.Error,
        "num_accelerators of node 0 is out of range",
    ),
    (
        lambda: NODE.get_placement(described(num_accelerators=-1)),
        roost.Error,
        "num_accelerators of node 0 must not be negative",
    ),
    (
        lambda: roost.Placement(*PACKED.get_placement(ONE)[0].__reduce__()[1][:5], 2**31, 1, [], True, [], "a"),
        roost.RankError,
        "local_rank is out of range",
    ),
    (
        lambda: ComponentPlacement({"cluster": {"num_nodes": 1, "component_placement": {"a\ud800": 0}}}, ONE),
        roost.Error,
        "cluster.component_placement: .* is not text that UTF-8 can hold",
    ),
    (
        lambda: ComponentPlacement({"cluster": {"num_nodes": 1, "component_placement": {"a": "\ud800"}}}, ONE),
        roost.Error,
        "cluster.component_placement.a: .* is not text that UTF-8",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), WRONG_VALUES)
def test_a_value_that_cannot_be_is_named(call: Any, kind: type, words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        call()
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, AssertionError) and caught.value.code


def test_numbers_of_numpy_are_numbers() -> None:
    two, eight, yes, no = numpy.int64(2), numpy.int32(8), numpy.True_, numpy.bool_(False)
    assert Cluster(num_nodes=two, num_gpus_per_node=eight).num_accelerators == 16
    assert Cluster(two, cluster="2x4").get_node_info(numpy.int8(1)).node_rank == 1
    today = PACKED.get_placement(ONE)
    assert PACKED.get_placement(numpy.int64(4), yes) == today == PACKED.get_placement(numpy.int64(1), numpy.int64(4))
    assert PACKED.get_placement(num_nodes_in_cluster=numpy.int64(1), num_gpus_per_node=numpy.int64(4)) == today
    assert PACKED.get_placement(ONE, no) == PACKED.get_placement(ONE, False) != today
    assert PackedPlacementStrategy(numpy.int64(0), numpy.int64(3), numpy.int16(1)).get_placement(ONE) == today
    assert FlexiblePlacementStrategy(numpy.arange(4).reshape(4, 1)).get_placement(ONE) == today
    assert ComponentPlacement(
        {"cluster": {"num_nodes": numpy.int64(1), "component_placement": {"a": numpy.int64(3)}}}, ONE
    ).get_hardware_ranks("a") == [3]


def test_a_number_of_nodes_may_come_first() -> None:
    assert PACKED.get_placement(1, num_gpus_per_node=4) == PACKED.get_placement(ONE)
    assert PACKED.get_placement(1, False, num_gpus_per_node=4) == PACKED.get_placement(ONE, False)
    assert PACKED.get_placement(1, 4, isolate_accelerator=False) == PACKED.get_placement(ONE, False)
    assert PACKED.get_placement(4, isolate_accelerator=False) == PACKED.get_placement(ONE, isolate_accelerator=False)
    assert PACKED.get_placement(isolate_accelerator=False, cluster=ONE) == PACKED.get_placement(ONE, False)


def test_a_path_is_bytes(tmp_path: Path) -> None:
    """Whatever the name of a file is, it can be opened and is said."""
    path = tmp_path / "train\udcff.yaml"
    path.write_text("cluster: {num_nodes: 1, component_placement: {actor: 0-8}}\n")
    with pytest.raises(roost.Error, match="ranks '0-8' reach 8") as caught:
        ComponentPlacement(path, Cluster(cluster="1x8"))
    assert caught.value.file == str(path) and (caught.value.line, caught.value.column) == (1, 54)
    assert Cluster(cluster_cfg=path, cluster="1x9").num_nodes == 1


def test_the_callers_values_stay_as_they_are() -> None:
    ranks, lists, labels = [1, 0, 1], [[3], [1, 0]], ["cluster"]
    NodePlacementStrategy(ranks, labels).get_placement(Cluster(cluster="2x4"))
    FlexiblePlacementStrategy(lists, labels).get_placement(ONE)
    assert (ranks, lists, labels) == ([1, 0, 1], [[3], [1, 0]], ["cluster"])
