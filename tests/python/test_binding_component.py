"""Component placement through Python: the seeds' configs, sharing, model-parallel sizes, errors."""

from pathlib import Path
from typing import Any

import pytest

import roost
from roost import Cluster, ComponentPlacement, HybridComponentPlacement, ModelParallelComponentPlacement, PlacementMode


def config(placement: dict[str, Any], num_nodes: int = 1, **sections: Any) -> dict[str, Any]:
    return {"cluster": {"num_nodes": num_nodes, "component_placement": placement}, **sections}


def visible(placement: ComponentPlacement, name: str, cluster: Cluster) -> list[str]:
    return [",".join(p.visible_accelerators) for p in placement.get_strategy(name).get_placement(cluster)]


def test_components_are_listed_counted_and_placed() -> None:
    cluster = Cluster(cluster="2x8")
    placement = HybridComponentPlacement(
        config(
            {"actor,inference": "0-7", "rollout": "8-15:0-3", "env": {"node_group": "node", "placement": "0-1:0-15"}}, 2
        ),
        cluster,
    )
    assert placement.components == ["actor", "inference", "rollout", "env"]
    assert placement.placement_mode is PlacementMode.HYBRID
    assert placement.get_hardware_ranks("rollout") == list(range(8, 16))
    assert [placement.get_world_size(name) for name in placement.components] == [8, 8, 4, 16]
    assert placement.get_strategy("actor") is placement.get_strategy("inference")
    assert placement.get_strategy("actor") is not placement.get_strategy("rollout")
    assert isinstance(placement.get_strategy("rollout"), roost.FlexiblePlacementStrategy)
    assert isinstance(placement.get_strategy("env"), roost.NodePlacementStrategy)
    assert visible(placement, "rollout", cluster) == ["0,1", "2,3", "4,5", "6,7"]
    assert ComponentPlacement(config({"actor": 0}, 2), cluster).placement_mode is None


def test_a_strategy_of_a_config_goes_to_other_clusters_too() -> None:
    placement = ComponentPlacement(config({"actor": "2-3"}), Cluster(cluster="1x4"))
    strategy = placement.get_strategy("actor")
    shared = strategy.get_placement(Cluster(cluster="1x4"), isolate_accelerator=False)
    assert [p.visible_accelerators for p in shared] == [["0", "1", "2", "3"]] * 2
    assert [p.cluster_node_rank for p in strategy.get_placement(Cluster(cluster="2x2"))] == [1, 1]
    assert [p.cluster_node_rank for p in strategy.get_placement(2, True)] == [1, 1]
    with pytest.raises(roost.RankError, match="out of range"):
        strategy.get_placement(Cluster(cluster="1x2"))


def test_a_path_is_a_config(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("cluster:\n  num_nodes: 1\n  component_placement:\n    actor: 0-8\n")
    with pytest.raises(roost.RankError, match="train.yaml:4:12: ranks '0-8' reach 8, out of range") as caught:
        ComponentPlacement(path, Cluster(cluster="1x8"))
    assert (caught.value.code, caught.value.line, caught.value.column, caught.value.key) == ("fit", 4, 12, "")
    assert caught.value.file == str(path)


def test_errors_of_a_mapping_name_its_key() -> None:
    with pytest.raises(roost.RankError) as caught:
        ComponentPlacement(
            config({"actor": 0, "rollout": {"node_group": "cluster", "placement": "0-8"}}), Cluster(cluster="1x8")
        )
    assert str(caught.value).startswith("cluster.component_placement.rollout.placement: ranks '0-8' reach 8")
    assert (caught.value.key, caught.value.line) == ("cluster.component_placement.rollout.placement", 0)


def test_unknown_names_are_refused() -> None:
    placement = ComponentPlacement(config({"actor": 0}), Cluster(cluster="1x8"))
    for ask in (placement.get_strategy, placement.get_world_size, placement.get_hardware_ranks):
        with pytest.raises(AssertionError, match="'critic' is not placed"):
            ask("critic")


@pytest.mark.parametrize("bad", [{}, {"cluster": {}}, {"cluster": {"num_nodes": 1}}, {"cluster": None}])
def test_a_config_without_component_placement_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match="cluster.component_placement"):
        ComponentPlacement(bad, Cluster(cluster="1x8"))


def test_num_nodes_is_the_clusters_where_the_config_has_none() -> None:
    cluster = Cluster(cluster="2x8")
    assert (
        ComponentPlacement({"cluster": {"component_placement": {"actor": "all"}}}, cluster).get_world_size("actor")
        == 16
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0-1,1-2", "Resource ranks must be unique"),
        ("0-0:0,1-1:2", "Process ranks must be in ascending order"),
        ("a", "Invalid rank format"),
        ("0-2:0-1", "."),
        ("6-9:0", "same node"),
    ],
)
def test_words_that_callers_of_the_reference_look_for(text: str, words: str) -> None:
    for kind in (ValueError, AssertionError):
        with pytest.raises(kind, match=words):
            ComponentPlacement(config({"actor": text}, 2), Cluster(cluster="2x8"))


def model(
    placement: dict[str, Any], cluster: str, actor_tp: int = 1, rollout_tp: int = 1, **more: Any
) -> ModelParallelComponentPlacement:
    keys = {
        "actor": {"model": {"tensor_model_parallel_size": actor_tp}},
        "rollout": {"tensor_parallel_size": rollout_tp},
    }
    nodes = int(cluster.partition("x")[0])
    whole = config(placement, nodes, **keys, **{k: v for k, v in more.items() if k != "section"})
    whole["cluster"] |= more.get("section", {})
    return ModelParallelComponentPlacement(whole, Cluster(cluster=cluster))


def test_collocated_rollout_strides_over_the_actor() -> None:
    placement = model({"actor,rollout,reward": "0-3"}, "1x4", 4, 2)
    assert placement.placement_mode is PlacementMode.COLLOCATED
    assert placement.rollout_sync_mode is PlacementMode.COLLOCATED
    assert (placement.is_collocated, placement.is_disaggregated, placement.is_auto, placement.is_pipeline) == (
        True,
        False,
        False,
        False,
    )
    assert visible(placement, "rollout", Cluster(cluster="1x4")) == ["0,2", "1,3"]
    assert visible(placement, "actor", Cluster(cluster="1x4")) == ["0", "1", "2", "3"]
    assert isinstance(placement.get_strategy("rollout"), roost.PackedPlacementStrategy)
    assert placement.get_world_size("rollout") == 2 and placement.rollout_world_size == 4
    sizes = (
        placement.actor_tp_size,
        placement.actor_pp_size,
        placement.actor_dp_size,
        placement.rollout_tp_size,
        placement.rollout_dp_size,
    )
    assert sizes == (4, 1, 1, 2, 2)
    assert placement.reward_world_size == 4 and placement.critic_world_size == 0
    assert not placement.has_dedicated_inference and not placement.has_dedicated_actor_inference


def test_disaggregated_roles_have_their_own() -> None:
    placement = model(
        {"actor": "0-1", "rollout": "2-5", "inference": "6-7", "reward": "2-5"},
        "1x8",
        1,
        2,
        algorithm={"recompute_logprobs": True},
    )
    assert placement.is_disaggregated and placement.is_pipeline
    assert placement.rollout_sync_mode is PlacementMode.DISAGGREGATED
    assert visible(placement, "rollout", Cluster(cluster="1x8")) == ["2,3", "4,5"]
    assert placement.has_dedicated_inference and placement.has_dedicated_inference_for_role("actor")
    assert not placement.has_dedicated_critic_inference and not placement.has_dedicated_inference_for_role("critic")
    assert placement.inference_world_size == 2 and placement.inference_dp_size == 2
    with pytest.raises(AssertionError, match="role must be"):
        placement.has_dedicated_inference_for_role("reward")


def test_auto_moves_accelerators() -> None:
    placement = model(
        {"actor": "0-3", "rollout": "4-7", "inference": "8-9", "reward": "0-3"},
        "1x10",
        1,
        2,
        algorithm={"recompute_logprobs": True},
        section={"auto_scheduler": True},
    )
    assert placement.is_auto and placement.is_pipeline and placement.placement_mode is PlacementMode.AUTO
    assert placement.get_world_size("actor") == 10


@pytest.mark.parametrize(
    ("placement", "words", "more"),
    [
        ({"rollout,reward": "0-3"}, "Actor GPUs", {}),
        ({"actor,reward": "0-3"}, "Rollout GPUs", {}),
        ({"actor,rollout": "0-3"}, "Reward GPUs", {}),
        ({"actor": "0-1", "rollout": "2-5", "inference": "6-7", "reward": "2-5"}, "recompute_logprobs", {}),
        (
            {"actor": "0-1", "rollout": "2-5", "inference": "6-7", "reward": "2-5"},
            "Inference TP size",
            {"inference": {"model": {"tensor_model_parallel_size": 4}}, "algorithm": {"recompute_logprobs": True}},
        ),
    ],
)
def test_model_parallel_errors_have_the_words(placement: dict[str, Any], words: str, more: dict[str, Any]) -> None:
    with pytest.raises(AssertionError, match=words):
        model(placement, "1x8", **more)


def test_other_sections_are_left_alone() -> None:
    """A training config holds what planning cannot read, and need not."""
    whole = config(
        {"actor,rollout,reward": "0-3"},
        actor={"model": {"path": object(), "tensor_model_parallel_size": 2}, "optim": object()},
        trainer=object(),
    )
    placement = ModelParallelComponentPlacement(whole, Cluster(cluster="1x4"))
    assert placement.actor_tp_size == 2


def test_processes_on_nodes_or_robots_hold_no_accelerators() -> None:
    groups = [
        {
            "label": "robot",
            "node_ranks": 1,
            "hardware": {"type": "Franka", "configs": [{"node_rank": 1, "robot_ip": "10.0.0.1"}]},
        }
    ]
    rows = {
        "actor": "1-2",
        "env": {"node_group": "node", "placement": "0-1"},
        "arm": {"node_group": "robot", "placement": 0},
    }
    text = config(rows, 2)
    text["cluster"]["node_groups"] = groups
    cluster = Cluster(cluster="2x2", cluster_cfg=text)
    placement = HybridComponentPlacement(text, cluster)
    held = {
        name: placement.get_strategy(name).get_placement(cluster).held_accelerators(cluster._value) for name in rows
    }
    assert held == {"actor": [(0, 1), (1, 0)], "env": [], "arm": []}
    with pytest.raises(TypeError, match="cluster"):
        placement.get_strategy("actor").get_placement(cluster).held_accelerators(cluster)  # type: ignore[arg-type]
