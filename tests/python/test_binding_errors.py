"""Errors as Python sees them: all at once, with keys instead of lines for mappings, in Python's words."""

import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import roost
from roost import Cluster, ClusterConfig, ComponentPlacement, ModelParallelComponentPlacement, _roost
from roost._plan.errors import error_fields, fault, make_error
from test_messages import all_sayings

ONE = Cluster(cluster="1x8")


def whole(placement: dict[str, Any], **section: Any) -> dict[str, Any]:
    return {"cluster": {"num_nodes": 1, "component_placement": placement} | section}


def refused(config: Any, cluster: Any = ONE, kind: type = ComponentPlacement) -> roost.Error:
    with pytest.raises(roost.Error) as caught:
        kind(config, cluster)
    return caught.value


def test_all_faults_of_a_config_are_said() -> None:
    error = refused(whole({"actor": "0-8", "critic": 0, "env": {"placement": 0, "node_grup": "a"}}))
    assert [fault.key for fault in error.errors] == ["cluster.component_placement.env.node_grup"]
    error = refused(whole({"actor": "0-8", "critic": 0, "rollout": "9"}))
    assert [fault.key for fault in error.errors] == [
        "cluster.component_placement.actor",
        "cluster.component_placement.rollout",
    ]
    assert (error.key, error.code, error.hint) == (error.errors[0].key, error.errors[0].code, error.errors[0].hint)
    assert str(error).splitlines() == [str(fault) for fault in error.errors]
    assert all(isinstance(fault, roost.RankError) and fault.code == "fit" for fault in error.errors)
    with pytest.raises(roost.Error) as caught:
        Cluster(
            cluster_cfg={
                "num_nodes": 0,
                "component_placement": {},
                "node_groups": [{"label": "node", "node_ranks": 0}],
            },
            cluster="1x8",
        )
    assert [fault.key for fault in caught.value.errors] == ["cluster.num_nodes", "cluster.node_groups[0].label"]


def test_one_fault_is_one_line() -> None:
    error = refused(whole({"actor": "0-8"}))
    assert "\n" not in str(error) and [str(fault) for fault in error.errors] == [str(error)]
    with pytest.raises(roost.Error) as caught:
        roost.PackedPlacementStrategy(3, 1)
    assert len(caught.value.errors) == 1 and roost.Error("x").errors == ()


def test_faults_of_a_file_have_their_places(tmp_path: Path) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("cluster:\n  num_nodes: 1\n  component_placement:\n    actor: 0-8\n    rollout: x\n")
    error = refused(path)
    assert [(fault.line, fault.column, fault.file) for fault in error.errors] == [
        (4, 12, str(path)),
        (5, 14, str(path)),
    ]


def test_more_faults_than_are_kept_are_counted() -> None:
    error = refused(whole({f"a{i}": "9" for i in range(2000)}))
    kept = len(error.errors)
    assert 100 < kept < 2000 and str(error).endswith(f"\nand {2000 - kept} more")


ARMS = {
    "label": "arms",
    "node_ranks": 0,
    "hardware": {"type": "Franka", "configs": [{"node_rank": 0}, {"node_rank": 0}]},
}
SECOND_PLACES = [
    (
        whole({"actor": 0, "critic,actor": 1}),
        "placed twice (multiple placements); the first is at cluster.component_placement.actor",
    ),
    (whole({}, node_groups=[ARMS]), "the same as the one at cluster.node_groups[0].hardware.configs[0]"),
    (
        whole({}, node_groups=[{"label": "a", "node_ranks": 0}, {"label": "a", "node_ranks": 0}]),
        "the first is at cluster.node_groups[0]",
    ),
    (whole({"1": 0, 1: 1}), "key '1' is written twice; the first is at cluster.component_placement.1"),
    (
        whole(
            {},
            node_groups=[
                {"label": "a", "node_ranks": 0, "env_configs": [{"node_ranks": 0, "env_vars": [{"A": 1}, {"A": 2}]}]}
            ],
        ),
        "the first is at cluster.node_groups[0].env_configs[0].env_vars[0].A",
    ),
]


@pytest.mark.parametrize(("config", "words"), SECOND_PLACES)
def test_a_mapping_has_no_lines(config: dict[str, Any], words: str) -> None:
    for given in (config, OmegaConf.create(config)) if 1 not in config["cluster"]["component_placement"] else (config,):
        error = refused(given)
        assert words in str(error)
        assert error.key.startswith("cluster.") and (error.line, error.column, error.file) == (0, 0, "")
        assert not re.search(r"line \d|config:\d", str(error))


def test_cures_are_in_pythons_words() -> None:
    error = refused(whole({"rollout,reward": "0-3"}), kind=ModelParallelComponentPlacement)
    assert error.hint == "place 'actor', or plan with HybridComponentPlacement" and error.hint in str(error)
    library = [
        saying.text
        for saying in all_sayings()
        if not saying.where.startswith("src/cli/") and re.search(r"--[a-z]", saying.text)
    ]
    assert len(library) > 3
    # "--rank" stands in a command that the user writes, and whole commands are the same for everybody.
    assert [
        text
        for text in library
        if re.search(
            r"--(?!rank)[a-z]", re.sub("`(?:ray start|roost stop|roost probe) [^`]*`", "", _roost.python_words(text))
        )
    ] == []


def test_a_file_with_defaults_is_told_of_hydra(tmp_path: Path) -> None:
    path = tmp_path / "main.yaml"
    path.write_text("defaults: [base]\nactor: {}\n")
    assert "pass the config that Hydra has composed" in refused(path).hint


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"num_nodes": "${nowhere}", "component_placement": {"actor": 0}}, "cluster.num_nodes"),
        ({"num_nodes": 1, "component_placement": {"actor": "${no.such.key}"}}, "cluster.component_placement.actor"),
        ({"num_nodes": 1, "component_placement": {"actor": "${no_resolver:1}"}}, "cluster.component_placement.actor"),
    ],
)
def test_what_omegaconf_cannot_resolve_is_an_error_of_the_config(section: dict[str, Any], key: str) -> None:
    error = refused(OmegaConf.create({"cluster": section}))
    assert (error.code, error.key) == ("reference", key) and str(error).startswith(f"{key}: ")
    assert error.__cause__ is not None and type(error.__cause__).__module__ == "omegaconf.errors"
    with pytest.raises(roost.Error, match=re.escape(key)):
        Cluster(cluster_cfg=OmegaConf.create({"cluster": section}), cluster="1x8")


def test_config_and_cluster_must_agree() -> None:
    config = whole({"actor": "all"})
    for spec in ("2x8", "3x8"):
        with pytest.raises(roost.Error, match=f"num_nodes is 1, but the cluster to place on has {spec[0]}") as caught:
            ComponentPlacement(config, Cluster(cluster=spec))
        assert (caught.value.key, caught.value.code) == ("cluster.num_nodes", "fit")
    groups = whole({"actor": {"node_group": "a800", "placement": 0}}, node_groups=[{"label": "a800", "node_ranks": 0}])
    error = refused(groups)
    assert "the config declares node group 'a800', but there is no node group 'a800' in the cluster" in str(error)
    assert error.hint == "make the cluster with this config: pass it to Cluster as cluster_cfg"
    assert ComponentPlacement(groups, Cluster(cluster_cfg=groups, cluster="1x8")).get_world_size("actor") == 1


def test_a_cluster_config_is_a_config() -> None:
    section = {
        "num_nodes": 2,
        "component_placement": {
            "actor": {"node_group": "gpu", "placement": "0-7"},
            "env": {"node_group": "arms", "placement": "all"},
        },
        "node_groups": [
            {
                "label": "gpu",
                "node_ranks": "0",
                "env_configs": [{"node_ranks": 0, "env_vars": [{"A": 1}], "python_interpreter_path": "/py"}],
            },
            {
                "label": "arms",
                "node_ranks": 1,
                "hardware": {"type": "Franka", "configs": [{"node_rank": 1, "robot_ip": "10.0.0.1"}, {"node_rank": 1}]},
            },
            {"label": "cpu", "node_ranks": "0-1", "ignore_hardware": True},
        ],
    }
    config = ClusterConfig.from_dict_cfg(OmegaConf.create(section))
    cluster, same = Cluster(cluster_cfg=config, cluster="2x8"), Cluster(cluster_cfg=section, cluster="2x8")
    assert cluster.node_groups == same.node_groups and cluster.nodes == same.nodes
    placement = ComponentPlacement(config, cluster)
    assert [placement.get_world_size(name) for name in placement.components] == [8, 2]
    made = ClusterConfig(num_nodes=1, component_placement={"actor": 0}, node_groups=[roost.NodeGroupConfig("a", [0])])
    assert [group.label for group in Cluster(cluster_cfg=made, cluster="1x8").node_groups] == ["a", "cluster", "node"]


def test_an_error_has_its_message_apart_from_its_hint() -> None:
    [error] = refused(whole({"actor": "0-8"})).errors
    assert error.hint and str(error) == f"{error.message} ({error.hint})"
    assert error.message.startswith("cluster.component_placement.actor: ")
    for raised in (roost.Error("text"), roost.RankError("text"), roost.EngineError("text"), roost.WorkerError("text")):
        assert (raised.message, raised.hint) == ("text", "")
    given = fault(roost.EngineError, "text", hint="cure", code="name")
    copy = pickle.loads(pickle.dumps(given))
    for each in (given, copy, make_error(**error_fields(given))):
        assert (str(each), each.message, each.hint, each.code) == ("text (cure)", "text", "cure", "name")
