"""Every entry point gives back what it took, on success and on failure.

Counted: the references to objects that are handed in, the living objects that Python tracks, and the
memory of the process, which also shows what the collector does not know.
"""

import gc
import pickle
import resource
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from roost import (
    Cluster,
    ComponentPlacement,
    FlexiblePlacementStrategy,
    ModelParallelComponentPlacement,
    NodePlacementStrategy,
    PackedPlacementStrategy,
    Placement,
    _roost,
)
from roost._plan.config import read_config
from roost.slime import get_engine_layout, get_placement_group_layout, order_bundles

TIMES = 300
CLUSTER = Cluster(cluster="2x8")
LABELS = ["cluster"]
LISTS = [[0, 1], [9, 8]]
RANKS = [0, 1]
CONFIG = {
    "cluster": {
        "num_nodes": 2,
        "component_placement": {"actor,rollout,reward": "0-7", "env": {"node_group": "a", "placement": 0}},
        "node_groups": [{"label": "a", "node_ranks": 0, "env_configs": [{"node_ranks": 0, "env_vars": [{"X": 1}]}]}],
    }
}
GROUP = SimpleNamespace(node_ranks=[0], hardware_type="Franka")
NODE = SimpleNamespace(
    num_accelerators=2,
    accelerator_type="AMD_GPU",
    hardware_resources=[roost.HardwareResource("Franka", [roost.HardwareInfo("Franka")])],
)
DESCRIBED = SimpleNamespace(get_node_group=lambda label: GROUP, get_node_info=lambda rank: NODE)
ROWS = PackedPlacementStrategy(0, 7).get_placement(CLUSTER)
OTHER_ROWS = PackedPlacementStrategy(0, 7).get_placement(CLUSTER)
OTHER = Cluster(cluster="2x8")
FLEXIBLE = ComponentPlacement(
    {"cluster": {"num_nodes": 2, "component_placement": {"a": "0-3:0-7"}}}, CLUSTER
).get_strategy("a")
PLAN = _roost.Plan(
    read_config("config", {"cluster": {"num_nodes": 2, "component_placement": {"actor": "0-7"}}}), CLUSTER._value
)
SLIME = SimpleNamespace(actor_num_gpus_per_node=4, rollout_num_gpus=2)
BUNDLES: list[tuple[int, Any, int | str]] = [
    *((i, "10.0.0.1", i) for i in range(4)),
    (4, ("b", "10.0.0.2"), "GPU-b"),
    (5, ("b", "10.0.0.2"), "GPU-a"),
]
ORDER = order_bundles(BUNDLES)
GROUPS_CONFIG = _roost.Config(b"args", "roost: {groups: {rollout_num_gpus: 2}}", (), groups=True)
VALUES = ROWS[0].__reduce__()[1]
SENTINELS = [
    SLIME,
    BUNDLES,
    BUNDLES[4],
    ORDER.gpus,
    GROUPS_CONFIG,
    CLUSTER,
    CLUSTER._value,
    LABELS,
    LISTS,
    RANKS,
    CONFIG,
    GROUP,
    NODE,
    DESCRIBED,
    ROWS,
    VALUES,
    LABELS[0],
    roost.Placement,
    roost.Placements,
    roost.Error,
    *LISTS,
]


def refused(call: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        with pytest.raises((roost.Error, TypeError, ValueError, KeyError, IndexError)):
            call()

    return run


ENTRIES: dict[str, Callable[[], Any]] = {
    "packed": lambda: PackedPlacementStrategy(0, 7, 2, node_group=LABELS).get_placement(CLUSTER),
    "packed refused": refused(lambda: PackedPlacementStrategy(3, 1)),
    "packed beyond": refused(lambda: PackedPlacementStrategy(0, 99).get_placement(CLUSTER)),
    "packed type": refused(lambda: PackedPlacementStrategy(0, "3")),
    "labels": refused(lambda: PackedPlacementStrategy(0, 3, node_group=["a", 5])),
    "flexible": lambda: FlexiblePlacementStrategy(LISTS).get_placement(CLUSTER),
    "flexible refused": refused(lambda: FlexiblePlacementStrategy([LISTS[0], []])),
    "flexible type": refused(lambda: FlexiblePlacementStrategy([LISTS[0], ["a"]])),
    "flexible labels": refused(lambda: FlexiblePlacementStrategy(LISTS, 5)),
    "node": lambda: NodePlacementStrategy(RANKS).get_placement(CLUSTER),
    "node refused": refused(lambda: NodePlacementStrategy([0, "a"])),
    "described": lambda: NodePlacementStrategy([0]).get_placement(DESCRIBED),
    "parts refused": refused(lambda: _roost.Cluster.from_description(((0, 1, ("a",), 0), (0, 1, 5, 0)), ())),
    "parts groups": refused(
        lambda: _roost.Cluster.from_description(((0, 1, ("a",), 0),), (("a", None, (0, 7), False),))
    ),
    "component": lambda: ComponentPlacement(CONFIG, Cluster(cluster_cfg=CONFIG, cluster="2x8")),
    "strategy of": lambda: (lambda s: (s.kind, s.arguments, s.labels, pickle.dumps(NodePlacementStrategy(RANKS))))(
        _roost.Strategy.of(ROWS, CLUSTER._value)
    ),
    "strategy of refused": refused(lambda: _roost.Strategy.of(ROWS, LABELS)),
    "strategies again": lambda: FLEXIBLE.get_placement(OTHER, False),
    "model words": lambda: _roost.accelerator_model("NPU:910B"),
    "model words refused": refused(lambda: _roost.accelerator_model("a:b:c")),
    "groups": lambda: get_engine_layout(SLIME, order=ORDER),
    "groups sizes": lambda: get_placement_group_layout(SLIME),
    "groups refused": refused(lambda: get_engine_layout(SLIME, slots_of_node=[1])),
    "groups counts": refused(lambda: _roost.groups_json(GROUPS_CONFIG, None, (8, -1), None, False)),
    "groups gpus": refused(lambda: _roost.groups_json(GROUPS_CONFIG, None, (8,), (0, 1), False)),
    "order": lambda: order_bundles(BUNDLES, visible={"10.0.0.2": "GPU-a,GPU-b"}),
    "order resolved": lambda: order_bundles([(0, "host", 0)], resolve=lambda name: "10.0.0.1"),
    "order refused": refused(lambda: order_bundles([(0, "10.0.0.1", 0), (0, "10.0.0.1", 1)])),
    "order node": refused(lambda: order_bundles([(0, 5, 0)])),
    "order gpu": refused(lambda: order_bundles([(0, "a", None)])),  # type: ignore[list-item]
    "order resolver": refused(lambda: order_bundles([(0, "host", 0)], resolve=lambda name: 5)),  # type: ignore[arg-type, return-value]
    "python words": lambda: _roost.python_words("plan with --mode hybrid"),
    "several errors": refused(
        lambda: ComponentPlacement({"cluster": {"component_placement": {"a": "99", "b": "98"}}}, CLUSTER)
    ),
    "pickle refused": refused(lambda: pickle.dumps(ROWS)),
    "surrogate": refused(lambda: PackedPlacementStrategy(0, 3, node_group="\udcff")),
    "address": lambda: PLAN.address("actor", "local_rank"),
    "address refused": refused(lambda: PLAN.address("nobody", "local_rank")),
    "plan properties": lambda: (PLAN.mode, PLAN.sizes, PLAN.other_names),
    "component refused": refused(lambda: ComponentPlacement(CONFIG, CLUSTER)),
    "model": lambda: vars(ModelParallelComponentPlacement(CONFIG, Cluster(cluster_cfg=CONFIG, cluster="2x8"))),
    "config refused": refused(
        lambda: Cluster(cluster_cfg={"cluster": {"num_nodes": 1, "component_placement": {"a": []}}}, cluster="1x1")
    ),
    "config groups": lambda: (
        _roost.Config(
            b"c",
            text="cluster: {num_nodes: 1, component_placement: {a: 99}, node_groups: [{label: a, node_ranks: 0}]}",
            paths=("c",),
            env=("A=b",),
        ).groups
    ),
    "config properties": lambda: (lambda c: (c.labels, c.components, c.warnings, c.cluster))(
        _roost.Config(b"c", text="cluster: {num_nodes: 1, component_placement: {a: 99}}", paths=())
    ),
    "cluster properties": lambda: (
        CLUSTER._value.node(1),
        CLUSTER._value.locate(0, 9),
        CLUSTER._value.groups,
        CLUSTER._value.warnings,
        CLUSTER._value.accelerator_counts,
    ),
    "cluster rank": refused(lambda: CLUSTER._value.node(9)),
    "cluster locate": refused(lambda: CLUSTER._value.locate(0, 99)),
    "cluster refused": refused(lambda: Cluster(cluster="2y8")),
    "rows": lambda: [(row, repr(row), row.accelerator_type) for row in ROWS],
    "slices": lambda: (
        ROWS[1:],
        ROWS == OTHER_ROWS,
        ROWS.hardware_ranges,
        repr(ROWS.column("local_rank")),
        ROWS[-1],
        ROWS == list(ROWS),
        ROWS.hardware_ranks,
        ROWS.node_groups,
        ROWS.columns,
        repr(ROWS),
    ),
    "row refused": refused(lambda: ROWS[99]),
    "columns": lambda: [(memoryview(ROWS.column(name)), list(ROWS.column(name))) for name in ROWS.columns],
    "column refused": refused(lambda: ROWS.column("x")),
    "column writable": refused(lambda: memoryview(ROWS.column("local_rank")).__setitem__(0, 1)),
    "placement": lambda: (Placement(*VALUES), Placement(*VALUES) == ROWS[0], Placement(*VALUES).local_hardware_ranks),
    "placement refused": refused(lambda: Placement(*VALUES[:-1], 5)),
    "reduce": lambda: ROWS[0].__reduce__(),
}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def growth(call: Callable[[], Any]) -> tuple[int, int, int]:
    """What TIMES calls leave: references to the sentinels (the most of one), blocks, tracked objects."""
    gc.collect()
    references = [sys.getrefcount(sentinel) for sentinel in SENTINELS]
    blocks, objects = sys.getallocatedblocks(), len(gc.get_objects())
    for _ in range(TIMES):
        call()
    gc.collect()
    blocks, objects = sys.getallocatedblocks() - blocks, len(gc.get_objects()) - objects
    return max(after - before for after, before in zip(map(sys.getrefcount, SENTINELS), references)), blocks, objects


@pytest.mark.parametrize("name", ENTRIES)
def test_nothing_is_kept(name: str) -> None:
    """A leak is there every time; what caches and other threads of the interpreter take is not."""
    call = ENTRIES[name]
    for _ in range(20):
        call()
    limits = TIMES // 10, TIMES // 2, TIMES // 2  # one object a call would be TIMES of them
    grown: list[tuple[int, int, int]] = []
    while len(grown) < 4:
        grown.append(growth(call))
        if all(min(column) < limit for column, limit in zip(zip(*grown), limits)):
            return
    raise AssertionError(f"references, blocks, objects: {grown}")


@pytest.mark.plain
def test_plans_give_their_memory_back() -> None:
    """A plan of a million is 50 MB; thirty of them one after another must not be."""
    cluster, strategy = Cluster(cluster=f"{1 << 14}x8"), PackedPlacementStrategy(0, (1 << 17) - 1)
    strategy.get_placement(cluster)
    before = peak()
    for _ in range(60):
        strategy.get_placement(cluster)
    assert peak() - before < 20_000  # kB; one plan has about 4,000


def test_a_leak_would_be_noticed() -> None:
    kept: list[Any] = []
    ENTRIES["leak"] = lambda: kept.append([LABELS])
    try:
        with pytest.raises(AssertionError):
            test_nothing_is_kept("leak")
    finally:
        del ENTRIES["leak"]
