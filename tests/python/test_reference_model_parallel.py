"""The reference model places the roles of model-parallel jobs as RLinf does, and differs from it where roost does."""

from typing import Any

import pytest

from reference import Answer
from test_reference import A_AND_B, answer, brief, code, on_units


def place(
    components: dict[str, Any],
    accelerators: tuple[int, ...] = (8,),
    tp: tuple[int, int] = (1, 1),
    **more: Any,
) -> Answer:
    return answer(
        components,
        accelerators,
        mode="model-parallel",
        actor={"model": {"tensor_model_parallel_size": tp[0]}},
        rollout={"tensor_parallel_size": tp[1], **more.pop("rollout", {})},
        algorithm={"recompute_logprobs": more.pop("recompute", True)},
        **more,
    )


def rollout(got: Answer) -> str:
    return brief(next(c for c in got.components if c["name"] == "rollout"))


TOGETHER = "actor,rollout,reward"
SEPARATE = {"actor": "0-1", "rollout": "2-5", "inference": "6-7", "reward": "2-5"}


@pytest.mark.parametrize(
    ("text", "accelerators", "tp", "expected"),
    [
        ("0-3", (8,), (4, 2), "n0:0,2 n0:1,3"),
        ("0-7", (8,), (4, 1), on_units(*range(8))),
        ("0-7", (8,), (1, 2), "n0:0,1 n0:2,3 n0:4,5 n0:6,7"),
        ("all", (8, 8), (8, 4), "n0:0,2,4,6 n0:1,3,5,7 n1:0,2,4,6 n1:1,3,5,7"),
    ],
)
def test_collocated_table(text: str, accelerators: tuple[int, ...], tp: tuple[int, int], expected: str) -> None:
    got = place({TOGETHER: text}, accelerators, tp)
    assert got.mode == "collocated"
    assert rollout(got) == expected
    assert [c["strategy"] for c in got.components] == ["packed"] * 3
    assert got.components[0]["world_size"] == len(got.components[0]["hardware_ranks"])


def test_collocated_refusals() -> None:
    assert code(place({TOGETHER: "all"}, (12,), tp=(4, 3))) == "rank"
    assert code(place({TOGETHER: "0-3", "inference": "0-3"})) == "rank"
    assert code(place({TOGETHER: "0-5"}, tp=(1, 4))) == "rank"  # rollout does not divide its accelerators
    assert code(place({TOGETHER: "0-3"}, tp=(5, 1))) == "rank"
    assert code(place({TOGETHER: "0-7"}, (4, 4), tp=(1, 8))) == "fit"


def test_collocated_rollout_counts_its_pipeline() -> None:
    got = place({TOGETHER: "0-7"}, tp=(1, 2), rollout={"pipeline_parallel_size": 2})
    assert rollout(got) == "n0:0,1,2,3 n0:4,5,6,7"


def test_disaggregated_table() -> None:
    got = place(SEPARATE, tp=(1, 2))
    assert got.mode == "disaggregated"
    assert rollout(got) == "n0:2,3 n0:4,5"
    assert [c["name"] for c in got.components] == list(SEPARATE)
    assert code(place({"actor": "0-3", "rollout": "2-5", "reward": "0"})) == "rank"
    assert code(place(SEPARATE, recompute=False)) == "schema"
    assert code(place(SEPARATE, inference={"model": {"tensor_model_parallel_size": 4}})) == "rank"
    # Pairs that RLinf does not look at.
    assert code(place({**SEPARATE, "critic_inference": "0-1"})) == "rank"
    assert code(place({**SEPARATE, "critic": "6"})) == "rank"


def test_auto_table() -> None:
    components = {"actor": "0-3", "rollout": "4-7", "inference": "8-9", "reward": "4-7"}
    auto = {"auto_scheduler": True}
    got = place(components, (10,), tp=(1, 2), cluster=auto)
    assert got.mode == "auto"
    assert got.components[0]["world_size"] == 10
    assert rollout(got) == "n0:4,5 n0:6,7"
    more = place(components, (10,), tp=(1, 2), cluster={**auto, "use_pre_process_policy": True})
    assert rollout(more) == "n0:0,1 n0:2,3 n0:4,5 n0:6,7"
    assert code(place(components, (11,), cluster=auto)) == "rank"
    # A critic keeps it from being auto.
    assert place({**components, "critic": 10}, (11,), cluster=auto).mode == "disaggregated"


def test_required_roles_contiguity_and_sizes() -> None:
    assert code(place({"actor,rollout": "0-3"})) == "schema"
    assert code(place({"actor,rollout": "0-3", "reward": "0,2"})) == "rank"  # not contiguous
    assert code(place({TOGETHER: "0-3"}, tp=(0, 1))) == "schema"
    assert code(place({TOGETHER: {"node_group": "node", "placement": "all"}})) == "hardware"


def test_groups_and_process_ranks_count() -> None:
    on = {label: {"node_group": label, "placement": "0-3"} for label in "ab"}
    got = place({"actor": on["a"], "rollout": on["b"], "reward": 0}, (4, 4), groups=A_AND_B)
    assert got.mode == "disaggregated"  # two nodes are not one place
    assert rollout(got) == "n1:0 n1:1 n1:2 n1:3"
    same = place({"actor": on["b"], "rollout": "4-7", "reward": 0}, (4, 4), groups=A_AND_B)
    assert same.mode == "collocated"
    explicit = place({"actor": "0-7:0-3", "rollout": "0-7", "reward": 0})  # process ranks count
    assert explicit.components[0]["world_size"] == 4
    assert explicit.components[0]["strategy"] == "flexible"
    half = {"actor": "0-7", "rollout": "0-7:0-7", "reward": 0}
    assert code(place(half, tp=(1, 2))) == "rank"
