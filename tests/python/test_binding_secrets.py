"""Secrets and files that a config names, as Python sees them: errors, warnings and reprs hold nothing of them."""

import os
import secrets
import warnings
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import roost
from roost import Cluster, ClusterConfig, ComponentPlacement


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    value = f"s3-{secrets.token_hex(12)}"
    print(f"the secret is {value}")
    monkeypatch.setenv("MY_SECRET_TOKEN", value)
    return value


def section(value: str, **more: Any) -> dict[str, Any]:
    return {
        "num_nodes": 1,
        "component_placement": {"actor": 0},
        "node_groups": [
            {
                "label": "a800",
                "node_ranks": 0,
                "env_configs": [
                    {"node_ranks": 0, "env_vars": [{"FOO": f"Bearer {value}"}, {"HF_TOKEN": "x"}, {"BAR": "seen"}]}
                ],
            }
        ],
    } | more


def everything(error: BaseException) -> str:
    """All that an exception shows of itself, of its fellows and of its causes."""
    parts = [str(error), repr(error), repr(vars(error))]
    parts += [everything(other) for other in getattr(error, "errors", ()) if other is not error]
    return "\n".join(parts + ([everything(error.__cause__)] if error.__cause__ else []))


INTERPOLATED = "${oc.env:MY_SECRET_TOKEN}"


@pytest.mark.parametrize("make", [dict, OmegaConf.create], ids=["dict", "omegaconf"])
def test_errors_hold_no_secret(secret: str, make: Any) -> None:
    for wrong in (
        {"num_nodes": INTERPOLATED},
        {"component_placement": {"actor": f"0-{INTERPOLATED},x"}},
        {"component_placement": {"actor": {"node_group": INTERPOLATED, "placement": 0}}},
        {"node_groups": [{"label": INTERPOLATED, "node_ranks": INTERPOLATED}]},
    ):
        with pytest.raises(roost.Error) as caught:
            ComponentPlacement(make({"cluster": section("x") | wrong}), Cluster(cluster="1x8"))
        assert secret not in everything(caught.value) and secret[:12] not in everything(caught.value)


def test_no_warning_tells_what_a_secret_number_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "73219864")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(roost.Error) as caught:
            ComponentPlacement(
                {"cluster": section("x", component_placement={"actor": 73219864})}, Cluster(cluster="1x8")
            )
    shown = everything(caught.value) + "".join(str(warning.message) for warning in told)
    assert "73219864" not in shown and str(73219864 // 60) not in shown


@pytest.mark.parametrize("make", [dict, OmegaConf.create], ids=["dict", "omegaconf"])
def test_values_are_there_and_reprs_do_not_show_them(secret: str, make: Any) -> None:
    config = ClusterConfig.from_dict_cfg(make(section(INTERPOLATED)))
    assert config.node_groups
    [env] = config.node_groups[0].env_configs or []
    assert env.get_env_vars() == {"FOO": f"Bearer {secret}", "HF_TOKEN": "x", "BAR": "seen"}
    assert secret not in repr(config) and "'***'" in repr(env) and "'seen'" in repr(env) and "'x'" not in repr(env)
    again = Cluster(cluster_cfg=config, cluster="1x8")
    assert secret not in repr(again) + "".join(repr(again.get_node_group(label)) for label in ("a800", "cluster"))


def test_a_file_that_a_config_names_is_not_waited_for_and_not_shown(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "other").write_text("root:hunter2:0\n")
    for name, wanted in (
        ("pipe", "is a pipe; a config can name regular files only"),
        ("other", "is not a roost snapshot"),
    ):
        config = {
            "cluster": {"num_nodes": 1, "component_placement": {"actor": 0}},
            "roost": {"cluster": str(tmp_path / name)},
        }
        (tmp_path / "config.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(config)))
        for cluster_cfg in (config, str(tmp_path / "config.yaml")):
            with pytest.raises(roost.Error, match=wanted) as caught:
                Cluster(cluster_cfg=cluster_cfg)
            assert "hunter2" not in everything(caught.value) and "--cluster" not in everything(caught.value)


def test_no_group_takes_the_name_of_a_file_of_the_run() -> None:
    for name in ("run.json", "records.jsonl"):
        with pytest.raises(
            roost.Error, match=f"'{name}' cannot be the name of a group: a run keeps a file of that name"
        ) as caught:
            roost.WorkerAddress(name, 0)
        assert caught.value.code == "name"
