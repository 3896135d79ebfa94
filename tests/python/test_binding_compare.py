"""The package and the reference model agree on random configs and clusters, whether the config comes
as a file or as a mapping. Cases and settings are those of test_compare.py."""

import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import roost
from chance import PROFILE
from generate import Case, cases
from reference import Answer, plan
from test_compare import EXAMPLES, folder, restrict, walk

__all__ = ["folder"]  # a fixture
FIELDS = (
    "rank",
    "cluster_node_rank",
    "placement_node_rank",
    "local_accelerator_rank",
    "accelerator_type",
    "local_rank",
    "local_world_size",
    "visible_accelerators",
    "isolate_accelerator",
    "local_hardware_ranks",
    "node_group_label",
)


def answer(config: Any, cluster_text: str, case: Case) -> Answer:
    """What the package says, in the model's words."""
    kind = roost.HybridComponentPlacement if case.mode == "hybrid" else roost.ModelParallelComponentPlacement
    try:
        cluster = roost.Cluster(cluster_cfg=config, cluster=cluster_text)
        placement = kind(config, cluster)
        components = [describe(placement, name, cluster, case.isolate) for name in placement.components]
    except roost.Error as error:
        return Answer(codes=frozenset([error.code]))
    mode = placement.placement_mode
    assert mode is not None
    return Answer(mode.value, components)


def describe(placement: roost.ComponentPlacement, name: str, cluster: roost.Cluster, isolate: bool) -> dict[str, Any]:
    strategy = placement.get_strategy(name)
    rows = strategy.get_placement(cluster, isolate)
    # Placed again from its numbers alone, a strategy gives the same.
    assert pickle.loads(pickle.dumps(strategy)).get_placement(cluster, isolate) == rows
    assert len(rows) == placement.get_world_size(name) and rows.hardware_ranks == placement.get_hardware_ranks(name)
    return {
        "name": name,
        "strategy": rows.strategy,
        "world_size": len(rows),
        "node_groups": rows.node_groups,
        "hardware_ranks": rows.hardware_ranks,
        "processes": [{field: getattr(row, field) for field in FIELDS} for row in rows],
    }


def find_difference(expected: Answer, got: Answer) -> str | None:
    if expected.codes or got.codes:
        return (
            None
            if got.codes and got.codes <= expected.codes
            else f"codes {set(got.codes)}, expected {set(expected.codes)}"
        )
    if got.mode != expected.mode:
        return f"mode {got.mode}, expected {expected.mode}"
    wanted = [
        {key: value for key, value in component.items() if key != "local_rank_rule"}
        for component in expected.components
    ]
    components = restrict(got.components, wanted)
    return None if json.dumps(components) == json.dumps(wanted) else next(walk(components, wanted, "components"))


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("ROOST_CLUSTER", "RLINF", "ROBOT"))]:
        monkeypatch.delenv(name)


@settings(PROFILE, max_examples=EXAMPLES)
@given(case=cases())
def test_the_package_plans_what_the_reference_model_plans(folder: Path, case: Case) -> None:
    expected = plan(case.config, case.machines.nodes, case.mode, case.isolate)
    cluster = case.machines.spec
    if cluster is None:
        cluster = str(folder / "cluster.json")
        Path(cluster).write_text(json.dumps(case.machines.snapshot))
    path = folder / "config.yaml"
    path.write_text(case.config_text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", roost.PlanWarning)
        for config in (path, case.config):
            difference = find_difference(expected, answer(config, cluster, case))
            assert difference is None, (
                f"{difference}\n--- from {type(config).__name__}:\n{case.config_text}--- cluster: {cluster}"
            )
