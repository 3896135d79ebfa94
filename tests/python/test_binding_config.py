"""Configs from Python: dicts, OmegaConf, what they turn into, and what is wrong with them."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import roost
from roost import Cluster, ClusterConfig, ComponentPlacement, ModelParallelComponentPlacement


def section(**more: Any) -> dict[str, Any]:
    return {"num_nodes": 2, "component_placement": {"actor": 0}} | more


def group(**more: Any) -> dict[str, Any]:
    return {"label": "a", "node_ranks": "0-1"} | more


def test_a_dictconfig_is_taken_as_it_is() -> None:
    cfg = OmegaConf.create(
        {
            "n": 2,
            "where": "0-7",
            "cluster": {
                "num_nodes": "${n}",
                "component_placement": {"actor,rollout": "${where}", "reward": "all"},
                "node_groups": [
                    {
                        "label": 4090,
                        "node_ranks": [0, 1],
                        "env_configs": [{"node_ranks": 0, "env_vars": [{"X": True}, {"Y": None}, {"Z": 1.50}]}],
                    }
                ],
            },
            "actor": {"model": {"tensor_model_parallel_size": "${n}"}, "path": "???", "bad": "${no.such.key}"},
            "rollout": {"tensor_parallel_size": 1},
        }
    )
    cluster = Cluster(cluster_cfg=cfg.cluster, num_gpus_per_node=4)
    found = cluster.get_node_group("4090")
    assert found and found.get_node_env_vars(0) == {"X": "True", "Y": "None", "Z": "1.5"}
    assert ComponentPlacement(cfg, cluster).get_world_size("actor") == 8
    assert ModelParallelComponentPlacement(cfg, cluster).actor_tp_size == 2
    assert Cluster(cluster_cfg=cfg, cluster="2x4").num_nodes == 2


def test_a_number_that_may_have_been_base_60_is_said() -> None:
    cfg = OmegaConf.create("cluster: {num_nodes: 1, component_placement: {actor: 1:0}}")
    assert cfg.cluster.component_placement.actor == 60
    with pytest.warns(
        roost.PlanWarning, match=r"cluster.component_placement.actor: 60 is what YAML readers make of 1:0"
    ):
        placement = ComponentPlacement(cfg, Cluster(cluster="1x64", num_nodes=1))
    assert placement.get_hardware_ranks("actor") == [60]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ComponentPlacement(
            {"cluster": section(component_placement={"actor": "1:0", "rollout": 59}, num_nodes=1)},
            Cluster(cluster="1x64"),
        )


def test_texts_survive_the_way_to_the_reader() -> None:
    for text in (
        "ä",
        "a b",
        'say "x"',
        "back\\slash",
        "tab\there",
        "\x7f\x85",
        "😀",
        "#no: comment",
        "- x",
        "${",
        "a: {b}",
        "",
    ):
        if "${" in text:
            continue
        cfg = section(node_groups=[group(env_configs=[{"node_ranks": 0, "env_vars": [{"X": text}]}])])
        found = Cluster(cluster_cfg=cfg, cluster="2x1").get_node_group("a")
        assert found and found.get_node_env_vars(0) == {"X": text}


def test_cluster_config_is_typed() -> None:
    config = ClusterConfig.from_dict_cfg(
        section(node_groups=[group(ignore_hardware=True, env_configs=[{"node_ranks": 1, "env_vars": [{"A": 1}]}])])
    )
    assert (config.num_nodes, config.component_placement) == (2, {"actor": 0})
    assert config.node_groups
    [found] = config.node_groups
    assert (found.label, found.node_ranks, found.hardware_type, found.ignore_hardware) == ("a", [0, 1], None, True)
    assert found.env_configs
    assert (found.env_configs[0].node_ranks, found.env_configs[0].env_vars) == ([1], [{"A": "1"}])
    assert ClusterConfig.from_dict_cfg(section()).node_groups is None


@pytest.mark.parametrize(
    ("cfg", "words"),
    [
        ({"num_nodes": 1}, r"Missing fields '\['component_placement'\]' detected"),
        ({"component_placement": {}}, r"Missing fields '\['num_nodes'\]' detected"),
        (section(node_groups=[group(unknown_field=1)]), r"Unknown fields '\{'unknown_field'\}' detected"),
        (section(node_groups=[group(label="node")]), "reserved"),
        (section(node_groups=["a"]), "Each node yaml config must be a dictionary"),
        (
            section(node_groups=[group(env_configs=[{"node_ranks": 0, "env_vars": ["A"]}])]),
            "Each node env_var must be a dict",
        ),
        (
            section(node_groups=[group(env_configs=[{"node_ranks": 0, "env_vars": [{"A": 1, "B": 2}]}])]),
            "exactly one key-value pair",
        ),
        (
            section(node_groups=[group(hardware={"type": "Franka", "configs": [5]})]),
            "Each hardware config must be a dictionary",
        ),
        (section(node_groups=[group(hardware={"type": "Robot", "configs": []})]), "Unsupported hardware type"),
        (
            section(node_groups=[group(hardware={"type": "Franka", "configs": [{"node_rank": 0}, {"node_rank": 0}]})]),
            "Duplicate hardware configs",
        ),
        (section(node_groups=[group(node_ranks="0-2")]), "Error parsing node_ranks"),
        (section(node_groups=[group(node_ranks="x")]), "Invalid rank format"),
        (
            section(node_groups=[group(node_ranks=0, hardware={"type": "Franka", "configs": [{"node_rank": 1}]})]),
            "must be within node_ranks",
        ),
        (section(num_nodes=0), "'num_nodes' must be a positive integer"),
        (section(num_nodes=True), "'num_nodes' must be a positive integer"),
    ],
)
def test_words_of_config_errors(cfg: dict[str, Any], words: str) -> None:
    for kind in (AssertionError, ValueError):
        with pytest.raises(kind, match=words):
            ClusterConfig.from_dict_cfg(OmegaConf.create(cfg))
        with pytest.raises(kind, match=words):
            Cluster(cluster_cfg=cfg, cluster="2x8")


def test_num_nodes_and_config_agree() -> None:
    assert Cluster(2, section(), cluster="2x8").num_nodes == 2
    with pytest.raises(ValueError, match="num_nodes is asked to be 3, but the config says 2"):
        Cluster(3, section(), cluster="3x8")
    with pytest.raises(ValueError, match="without a config"):
        Cluster(0, section(), cluster="3x8")
    assert Cluster(0, cluster="3x8").num_nodes == 3
    with pytest.raises(roost.Error, match="num_nodes is 4, but the cluster has 3"):
        Cluster(4, cluster="3x8")
    with pytest.warns(roost.PlanWarning, match="num_nodes is 2"):
        assert Cluster(2, cluster="3x8").num_nodes == 2


def test_where_the_nodes_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"cluster": section(), "roost": {"cluster": "2x3"}}
    monkeypatch.delenv("ROOST_CLUSTER", raising=False)
    assert Cluster(cluster_cfg=whole).num_accelerators == 6
    monkeypatch.setenv("ROOST_CLUSTER", "2x5")
    assert Cluster(cluster_cfg=whole).num_accelerators == 10
    assert Cluster(cluster_cfg=whole, num_gpus_per_node=1).num_accelerators == 2
    assert Cluster(cluster_cfg=whole, cluster="2x4").num_accelerators == 8
    assert Cluster(num_nodes=2).num_gpus_per_node == 5
    with pytest.raises(TypeError, match="pass one of them"):
        Cluster(cluster_cfg=whole, cluster="2x4", num_gpus_per_node=8)


def test_variables_of_the_environment_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SMILE", "😀")
    monkeypatch.setenv("RANKS", "0-3")
    monkeypatch.setenv("BROKEN", "\udcff")  # a byte that is no UTF-8
    path = tmp_path / "c.yaml"
    path.write_text(
        "cluster:\n  num_nodes: 1\n  component_placement: {actor: '${oc.env:RANKS}'}\n"
        "  node_groups: [{label: a, node_ranks: 0, env_configs: [{node_ranks: 0, env_vars: [{S: '${oc.env:SMILE}'}]}]}]\n"
    )
    cluster = Cluster(cluster_cfg=path, cluster="1x4")
    assert ComponentPlacement(str(path), cluster).get_world_size("actor") == 4
    found = cluster.get_node_group("a")
    assert found and found.get_node_env_vars(0) == {"S": "😀"}


def test_optional_packages_stay_optional() -> None:
    """The package and a plan from a dict load none of them."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['omegaconf', 'hydra', 'numpy', 'torch', 'ray']))\n"
        "import roost; c = roost.Cluster(cluster='1x4')\n"
        "p = roost.ComponentPlacement({'cluster': {'component_placement': {'a': '0-3'}}}, c)\n"
        "assert sum(memoryview(p.get_strategy('a').get_placement(c).column('local_rank'))) == 6\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_plain_mapping_refers_to_its_own_top_level() -> None:
    cluster = Cluster(cluster="1x4")
    section = {"num_nodes": 1, "component_placement": {"actor": "${ranks.low}"}}
    config = {"ranks": {"low": "0-${last}"}, "last": 1, "cluster": section, "other": {"never": "${resolved}"}, 5: 6}
    assert ComponentPlacement(config, cluster).get_hardware_ranks("actor") == [0, 1]
    with pytest.raises(roost.Error, match="'.{last}' names a value that is not there"):
        ComponentPlacement({"ranks": {"low": "0-${last}"}, "cluster": section}, cluster)
    itself = {"x": "${x}", "cluster": {"num_nodes": 1, "component_placement": {"actor": "${x}"}}}
    with pytest.raises(roost.Error):
        ComponentPlacement(itself, cluster)


def test_configs_that_have_no_end_are_refused() -> None:
    endless: dict[str, Any] = {"num_nodes": 1, "component_placement": {}}
    endless["component_placement"]["a"] = endless
    with pytest.raises(roost.Error, match=r"cluster\.component_placement\.a contains itself"):
        roost.ComponentPlacement({"cluster": endless}, roost.Cluster(cluster="1x4"))
    deep: Any = 0
    for _ in range(2000):
        deep = {"a": deep}
    with pytest.raises(roost.Error, match="32") as caught:
        roost.ComponentPlacement(
            {"cluster": {"num_nodes": 1, "component_placement": {"a": deep}}}, roost.Cluster(cluster="1x4")
        )
    assert caught.value.code == "limit"


def test_a_value_that_is_missing_is_cured_in_pythons_words() -> None:
    with pytest.raises(roost.Error, match=r"\(write it here, or set it in the config that is passed\)"):
        roost.Cluster(cluster_cfg={"num_nodes": "???", "component_placement": {}}, cluster="1x4")
