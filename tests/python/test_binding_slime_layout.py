"""Layouts of placement groups: slime's worked numbers, its weak spots, and random ones against an
independent reference. The same through the program.

ROOST_EXAMPLES  how many random layouts
"""

import itertools
import json
import os
import random
import re
import subprocess
import warnings
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

import roost
from reference_slime import Refused, lay_out
from roost.slime import get_engine_layout, get_placement_group_layout, order_bundles

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
EXAMPLES = int(os.environ.get("ROOST_EXAMPLES", "2000"))
A16 = {"actor_num_nodes": 2, "actor_num_gpus_per_node": 8}


def layout_of(**args: Any) -> Any:
    return get_engine_layout(Namespace(**args))


def ports_of(layout: Any, base: int = 15000) -> list[dict[str, int]]:
    """The ports each part would have if all were free from `base` on."""
    return [
        {name: base + offset for name, offset in part.port_offsets.items()}
        for engine in layout.engines
        for part in engine.parts
    ]


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        ({"rollout_num_gpus": 32}, (48, 16)),
        ({"rollout_num_gpus": 32, "debug_train_only": True}, (16, 0)),
        ({"rollout_num_gpus": 32, "debug_rollout_only": True}, (32, 0)),
        ({"rollout_num_gpus": 8, "colocate": True}, (16, 0)),
        ({"rollout_num_gpus": 16, "colocate": True}, (16, 0)),
        ({"rollout_num_gpus": 32, "colocate": True}, (32, 0)),
        ({"rollout_num_gpus": 0, "colocate": True}, (16, 0)),
        ({"rollout_num_gpus": 0}, (16, 16)),
        ({"rollout_num_gpus": 32, "rollout_external": True}, (16, 16)),
        ({"rollout_num_gpus": 32, "rollout_external": True, "debug_rollout_only": True}, (16, 0)),
        ({"rollout_external": True}, (16, 16)),
        ({"colocate": True}, (16, 0)),
        ({"debug_train_only": True}, (16, 0)),
        ({"load_debug_rollout_data": "x.pt"}, (16, 0)),
        ({"load_debug_rollout_data": "x.pt", "rollout_external_engine_addrs": ["h:1"]}, (16, 0)),
        ({"rollout_external_engine_addrs": ["h:1"]}, (16, 16)),
        ({"rollout_num_gpus": 0, "debug_rollout_only": True}, (0, 0)),
        ({"colocate": True, "debug_rollout_only": True}, (16, 0)),
        ({"rollout_num_gpus": 32, "colocate": True, "profile": "seed"}, (16, 0)),
        ({"rollout_num_gpus": 32, "colocate": True, "colocate_size": "actor"}, (16, 0)),
    ],
    ids=str,
)
def test_the_worked_sizes(args: dict[str, Any], answer: tuple[int, int]) -> None:
    assert get_placement_group_layout(Namespace(**A16, **args)) == answer


def test_what_is_missing_takes_slimes_default() -> None:
    assert get_placement_group_layout(Namespace(rollout_num_gpus=8)) == (16, 8)
    assert get_placement_group_layout(Namespace(colocate=True, rollout_num_gpus=None, other="x")) == (8, 0)


def test_shares() -> None:
    layout = layout_of(**A16, rollout_num_gpus=32, advantage_estimator="ppo", rollout_num_gpus_per_engine=2)
    assert layout.shares["actor"] == layout.shares["critic"] == roost.slime.Share(0, 48, 16, 0.4)
    assert layout.shares["rollout"] == roost.slime.Share(16, 32, 16, 0.2)
    assert layout.num_cpus == 50 and layout.offload_train
    assert layout_of(**A16, rollout_num_gpus=32).shares["critic"] is None
    assert layout_of(**A16, rollout_external=True).shares["rollout"].count == 0


@pytest.mark.parametrize(
    ("rollout", "each", "slots", "node0"),
    [(8, 1, list(range(8)), list(range(8))), (8, 2, [0, 2, 4, 6], [0, 1, 2, 3]), (32, 16, [0, 8, 16, 24], [0, 2])],
)
def test_the_worked_parts(rollout: int, each: int, slots: list[int], node0: list[int]) -> None:
    layout = layout_of(debug_rollout_only=True, rollout_num_gpus=rollout, rollout_num_gpus_per_engine=each)
    parts = [part for engine in layout.engines for part in engine.parts]
    assert [part.slot for part in parts] == slots
    assert [part.rank for part in parts if part.node0] == node0
    assert [engine.offset for engine in layout.engines] == list(range(0, rollout, each))


def test_the_worked_list_of_models() -> None:
    groups = [
        {"worker_type": "regular", "num_gpus": 4, "num_gpus_per_engine": 2},
        {"worker_type": "regular", "num_gpus": 2},
        {"worker_type": "placeholder", "num_gpus": 2},
    ]
    layout = layout_of(debug_rollout_only=True, rollout_num_gpus=8, sglang=[{"name": "a", "server_groups": groups}])
    assert [[part.slot for part in engine.parts] for engine in layout.engines] == [[0], [2], [4], [5]]
    assert [group.first_slot for group in layout.server_groups] == [0, 4, 6]
    assert [group.num_engines for group in layout.server_groups] == [2, 2, 0]


def test_a_placeholder_keeps_its_ranks() -> None:
    groups = [{"worker_type": "placeholder", "num_gpus": 2}, {"worker_type": "regular", "num_gpus": 2}]
    layout = layout_of(debug_rollout_only=True, rollout_num_gpus=4, sglang=[{"name": "a", "server_groups": groups}])
    assert [part.rank for engine in layout.engines for part in engine.parts] == [2, 3]


def test_the_worked_ports() -> None:
    one = layout_of(debug_rollout_only=True, rollout_num_gpus=8)
    assert ports_of(one) == [
        {"server": 15000 + 2 * i, "nccl": 15001 + 2 * i, "dist_init": 15016 + 31 * i} for i in range(8)
    ]
    assert one.ports_of_node == [264]
    two = layout_of(debug_rollout_only=True, rollout_num_gpus=16, rollout_num_gpus_per_engine=8)
    assert ports_of(two) == [{"server": 15000, "nccl": 15001, "dist_init": 15002}] * 2
    assert two.ports_of_node == [33, 33]
    wide = layout_of(debug_rollout_only=True, rollout_num_gpus=16, rollout_num_gpus_per_engine=16)
    assert ports_of(wide) == [{"server": 15000, "nccl": 15001, "dist_init": 15002}, {"server": 15000, "nccl": 15001}]
    assert wide.ports_of_node == [33, 2]
    assert [part.ports for part in wide.engines[0].parts] == [
        {"server": 1, "nccl": 1, "dist_init": 31},
        {"server": 1, "nccl": 1},
    ]
    wider = layout_of(debug_rollout_only=True, rollout_num_gpus=32, rollout_num_gpus_per_engine=16, sglang_dp_size=4)
    assert [engine.parts[0].ports["dist_init"] for engine in wider.engines] == [34, 34]
    assert [(engine.parts[0].node, engine.parts[0].port_offsets["dist_init"]) for engine in wider.engines] == [
        (0, 2),
        (2, 2),
    ]
    assert wider.ports_of_node == [36, 2, 36, 2]
    prefill = layout_of(
        debug_rollout_only=True, rollout_num_gpus=16, rollout_num_gpus_per_engine=4, prefill_num_servers=2
    )
    assert ports_of(prefill)[:2] == [
        {"server": 15000, "nccl": 15001, "bootstrap": 15002, "dist_init": 15006},
        {"server": 15003, "nccl": 15004, "bootstrap": 15005, "dist_init": 15037},
    ]


def test_both_profiles_and_each_value_by_itself() -> None:
    with pytest.warns(roost.PlanWarning, match="ports from 10000 on reach into 10002-19999"):
        seed = layout_of(profile="seed", colocate=True)
    assert (seed.shares["actor"].gpu_each, seed.shares["rollout"].gpu_each, seed.port_base, seed.share_gpu_ids) == (
        0.8,
        0.2,
        10000,
        False,
    )
    assert seed.engines[0].parts[0].ports["dist_init"] == 7
    mixed = layout_of(
        colocate=True,
        num_gpus_per_actor=0.8,
        dist_init_ports=6,
        share_gpu_ids=False,
        colocate_size="actor",
        num_gpus_per_part=0.2,
    )
    assert mixed.shares == seed.shares and mixed.port_base == 20000 and mixed.engines == seed.engines


def test_external_engines() -> None:
    addrs = [
        {"address": "10.0.0.1:80", "num_gpus": 8},
        {"address": "http://[fd00::1]:80", "num_gpus": 4, "worker_type": "decode"},
        "h:9",
    ]
    layout = layout_of(rollout_external_engine_addrs=addrs)
    assert [(e.address, e.gpus, e.offset, e.worker_type, e.parts) for e in layout.engines] == [
        ("10.0.0.1:80", 8, 0, "regular", []),
        ("http://[fd00::1]:80", 4, 8, "decode", []),
        ("h:9", None, 12, "regular", []),
    ]
    assert layout.num_cpus == 8 + 2 + 0.6


# --- weak spots ---


def test_the_host_of_a_part_is_where_its_slots_are() -> None:
    args = Namespace(actor_num_gpus_per_node=4, rollout_num_gpus=12, rollout_num_gpus_per_engine=2)
    layout = get_engine_layout(args, "2x8")
    assert [(part.slot, part.node, part.local_gpu) for e in layout.engines for part in e.parts] == [
        (4, 0, 4),
        (6, 0, 6),
        (8, 1, 0),
        (10, 1, 2),
        (12, 1, 4),
        (14, 1, 6),
    ]
    # Ports are the machine's own: part 2 starts anew on its node.
    assert [part.port_offsets["server"] for e in layout.engines for part in e.parts] == [0, 2, 0, 2, 4, 6]


def test_nodes_of_four_gpus_are_nodes_of_four() -> None:
    args = Namespace(actor_num_gpus_per_node=4, rollout_num_gpus=8, rollout_num_gpus_per_engine=8)
    assert [part.node for part in get_engine_layout(args, "3x4").engines[0].parts] == [1, 2]
    assert [part.node for part in get_engine_layout(args, slots_of_node=[4, 4, 4]).engines[0].parts] == [1, 2]


def test_an_engine_is_on_one_node() -> None:
    args = Namespace(actor_num_gpus_per_node=4, rollout_num_gpus=8, rollout_num_gpus_per_engine=8)
    with pytest.raises(
        roost.RankError, match="slots 4-11.*node 0 ends with slot 7.*multiple of 8 GPUs.*4 GPUs per engine"
    ):
        get_engine_layout(args)
    with pytest.raises(roost.RankError) as caught:
        get_engine_layout(args, "2x8")
    assert caught.value.code == "fit"
    # What a probe found counts, not what a machine could have.
    assert get_engine_layout(args, slots_of_node=[4, 8]).engines[0].parts[0].node == 1


def test_a_flag_of_megatrons_with_the_name_of_a_setting_is_left_alone() -> None:
    for value in (False, True):
        assert get_placement_group_layout(Namespace(rollout_num_gpus=8, profile=value)) == (16, 8)
    assert layout_of(rollout_num_gpus=8, profile="seed").port_base == 10000


def test_an_engine_has_gpus_that_follow_one_another() -> None:
    """Somebody else has GPUs 2 and 3 of the second node: slots 8-11 are GPUs 0, 1, 4 and 5."""
    bundles = [(i, "10.0.0.1", i) for i in range(8)] + [
        (8 + i, "10.0.0.2", gpu) for i, gpu in enumerate([0, 1, 4, 5, 6, 7])
    ]
    order = order_bundles(bundles)
    assert order.gpus == [*range(8), 0, 1, 4, 5, 6, 7]
    args = {"rollout_num_gpus": 4, "rollout_num_gpus_per_engine": 4}
    with pytest.raises(
        roost.RankError,
        match="engine 0 of 'default' would start on GPUs 0-3 of node 1, but its slots 8-11 are GPUs 0, 1, 4, 5.*use 2 GPUs per engine",
    ) as caught:
        get_engine_layout(Namespace(**args), order=order)
    assert caught.value.code == "fit"
    pairs = get_engine_layout(Namespace(**args | {"rollout_num_gpus_per_engine": 2}), order=order)
    assert [engine.parts[0].local_gpu for engine in pairs.engines] == [0, 4]
    # What an id that is no number is beside, nobody knows.
    named = order_bundles([(i, "10.0.0.1", f"GPU-{i}") for i in range(12)])
    assert named.gpus == [-1] * 12
    assert get_engine_layout(Namespace(**args), order=named).engines[0].parts[0].local_gpu == 8


@pytest.mark.parametrize(
    ("rollout", "each", "words"),
    [
        (24, 16, "24.*16.*8 would be left"),
        (24, 12, "12 GPUs do not fill nodes of 8"),
        (10, 4, "10.*4.*2 would be left"),
    ],
)
def test_sizes_tile(rollout: int, each: int, words: str) -> None:
    with pytest.raises(roost.RankError, match=words):
        layout_of(rollout_num_gpus=rollout, rollout_num_gpus_per_engine=each)


def test_node_rank_counts_within_the_engine() -> None:
    groups = [
        {"worker_type": "regular", "num_gpus": 8, "num_gpus_per_engine": 8},
        {"worker_type": "regular", "num_gpus": 16, "num_gpus_per_engine": 16},
    ]
    layout = layout_of(debug_rollout_only=True, rollout_num_gpus=24, sglang=[{"name": "a", "server_groups": groups}])
    assert [(part.rank, part.node_rank, "dist_init" in part.ports) for part in layout.engines[1].parts] == [
        (1, 0, True),
        (2, 1, False),
    ]


def test_counts_are_set_and_not_negative() -> None:
    for args in ({}, {"debug_rollout_only": True}):
        with pytest.raises(roost.Error, match="'rollout_num_gpus' is not set"):
            get_placement_group_layout(Namespace(**args))
    with pytest.raises(roost.Error, match="rollout_num_gpus.*not '-4'") as caught:
        get_placement_group_layout(Namespace(actor_num_gpus_per_node=8, rollout_num_gpus=-4))
    assert caught.value.key == "rollout_num_gpus"


def test_a_share_that_is_too_small_is_refused_before_anything_exists() -> None:
    with pytest.raises(IndexError, match="engines take 32 GPUs, but rollout's share has 8"):
        layout_of(profile="seed", colocate=True, rollout_num_gpus=32)
    with pytest.raises(IndexError, match="takes 40 GPUs.*there are 16"):
        get_engine_layout(Namespace(rollout_num_gpus=32), "2x8")
    with pytest.raises(IndexError, match="takes 16 GPUs.*there are 12"):
        get_engine_layout(Namespace(rollout_num_gpus=8), slots_of_node=[8, 4])


def test_models_on_one_node_have_their_own_ports() -> None:
    models = [
        {"name": name, "server_groups": [{"worker_type": "regular", "num_gpus": 4, "num_gpus_per_engine": 4}]}
        for name in "ab"
    ]
    layout = layout_of(debug_rollout_only=True, rollout_num_gpus=8, sglang=models)
    assert [port["server"] for port in ports_of(layout)] == [15000, 15033]


def test_a_machine_has_one_row_of_ports() -> None:
    layout = get_engine_layout(Namespace(debug_rollout_only=True, rollout_num_gpus=8, num_gpus_per_node=4), "1x8")
    taken = [port for part in ports_of(layout) for port in part.values()]
    assert len(set(taken)) == len(taken) and layout.ports_of_node == [264]
    assert {part.node for e in layout.engines for part in e.parts} == {0}


def test_the_default_base_is_not_among_rays_own_ports() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not 10002 <= layout_of(rollout_num_gpus=8).port_base <= 19999
    with pytest.warns(roost.PlanWarning, match="15000"):
        layout_of(rollout_num_gpus=8, port_base=15000)


def test_fractions_are_exact() -> None:
    layout_of(colocate=True, use_critic=True, num_gpus_per_actor=0.4, num_gpus_per_part=0.2)
    with pytest.raises(roost.Error, match="together that is 1.1"):
        layout_of(colocate=True, use_critic=True, num_gpus_per_part=0.3)
    layout_of(rollout_num_gpus=8, use_critic=True, num_gpus_per_actor="0.5", num_gpus_per_part=1)
    for wrong in ("-0.1", "1e-1", ".", "", "0x1", "0.12345", 0.1 + 0.2):
        with pytest.raises(roost.Error, match="num_gpus_per_part"):
            layout_of(colocate=True, num_gpus_per_part=wrong)


# --- against the reference ---


def random_args(dice: random.Random) -> tuple[dict[str, Any], list[int] | None]:
    args: dict[str, Any] = {"actor_num_nodes": dice.randint(0, 3), "actor_num_gpus_per_node": dice.choice([1, 2, 4, 8])}
    if dice.random() < 0.9:
        args["rollout_num_gpus"] = dice.choice([0, 2, 4, 8, 12, 16, 24, 32])
    args["rollout_num_gpus_per_engine"] = dice.choice([1, 1, 2, 4, 8, 16, 3])
    for name, chance in {
        "colocate": 0.4,
        "debug_train_only": 0.1,
        "debug_rollout_only": 0.2,
        "rollout_external": 0.1,
        "use_critic": 0.2,
        "train_async": 0.1,
    }.items():
        if dice.random() < chance:
            args[name] = True
    if dice.random() < 0.2:
        args["prefill_num_servers"] = dice.randint(0, 3)
    if dice.random() < 0.3:
        args["num_gpus_per_node"] = dice.choice([2, 4, 8])
    if dice.random() < 0.2:
        args["sglang_dp_size"] = dice.randint(1, 8)
    if dice.random() < 0.3 and not args.get("rollout_external"):
        left, models = args.get("rollout_num_gpus", 8), []
        for name in "abc"[: dice.randint(1, 3)]:
            groups = []
            for _ in range(dice.randint(1, 2)):
                count = min(left, dice.choice([2, 4, 8, 16]))
                kind = dice.choice(["regular", "prefill", "decode", "encoder", "placeholder"])
                if count:
                    groups.append(
                        {
                            "worker_type": kind,
                            "num_gpus": count,
                            **({"num_gpus_per_engine": dice.choice([1, 2, 4, 8])} if dice.random() < 0.5 else {}),
                        }
                    )
                left -= count
            models.append(
                {
                    "name": name,
                    "server_groups": groups,
                    **({"num_gpus_per_engine": dice.choice([1, 2])} if dice.random() < 0.3 else {}),
                }
            )
        if left and models[-1]["server_groups"]:
            models[-1]["server_groups"][-1]["num_gpus"] += left if dice.random() < 0.9 else 0
        args["sglang"] = models
    nodes = [dice.choice([4, 8, 8]) for _ in range(dice.randint(1, 8))] if dice.random() < 0.5 else None
    return args, nodes


def test_random_layouts_are_the_references() -> None:
    dice = random.Random(5)
    laid_out = 0
    for _ in range(EXAMPLES):
        args, nodes = random_args(dice)
        try:
            wanted = lay_out(args, nodes)
        except Refused as refusal:
            with pytest.raises(roost.Error):
                get_engine_layout(Namespace(**args), slots_of_node=nodes)
                pytest.fail(f"{args} {nodes}: {refusal}")
            continue
        laid_out += 1
        got = get_engine_layout(Namespace(**args), slots_of_node=nodes)
        assert (got.num_gpus, got.rollout_offset, got.shares["actor"].world_size) == (
            wanted["num_gpus"],
            wanted["rollout_offset"],
            wanted["trainers"],
        ), args
        assert [(e.model, e.worker_type, e.gpus, e.first_slot) for e in got.engines] == [
            tuple(e[k] for k in ("model", "worker_type", "gpus", "first_slot")) for e in wanted["engines"]
        ], args
        parts = [(p.rank, p.slot, p.node_rank, p.node, p.port_offsets) for e in got.engines for p in e.parts]
        assert parts == [
            (p["rank"], p["slot"], p["node_rank"], p["node"], p["at"]) for e in wanted["engines"] for p in e["parts"]
        ], (args, nodes)
        taken = [
            (p.node, p.port_offsets[name] + i)
            for e in got.engines
            for p in e.parts
            for name in p.ports
            for i in range(p.ports[name])
        ]
        assert len(set(taken)) == len(taken)
        assert [sum(node == n for node, _ in taken) for n in range(len(got.ports_of_node))] == got.ports_of_node
    assert laid_out > EXAMPLES // 5


def test_the_program_says_what_the_package_says(tmp_path: Path) -> None:
    """JSON is YAML: the arguments go to the program as they are."""
    dice = random.Random(6)
    for _ in range(60):
        args, nodes = random_args(dice)
        cluster = ",".join(f"1x{count}" for count in nodes) if nodes else None
        (tmp_path / "config.yaml").write_text(json.dumps({"roost": {"groups": args}}))
        words = ["--cluster", cluster] if cluster else []
        done = subprocess.run(
            [ROOST, "groups", "--json", *words, "config.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        again = subprocess.run(
            [ROOST, "groups", *words, "config.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert again.returncode == done.returncode
        assert done.returncode in (0, 3, 4), done.stderr
        try:
            layout = get_engine_layout(Namespace(**args), cluster)
        except roost.Error as error:
            assert error.code in [fault["code"] for fault in json.loads(done.stderr)["errors"]]
            continue
        document = json.loads(done.stdout)
        assert set(document) >= {"num_gpus", "rollout_offset", "shares", "engines"}
        assert document["num_gpus"] == layout.num_gpus
        assert [part["slot"] for e in document["engines"] for part in e["parts"]] == [
            part.slot for e in layout.engines for part in e.parts
        ]
        assert all(len(line) <= 80 for line in again.stdout.splitlines())


def test_the_same_settings_give_the_same_bytes(tmp_path: Path) -> None:
    """Whatever order a snapshot lists its nodes in, and whatever the environment is."""
    dice = random.Random(7)
    nodes = [
        {
            "id": f"n{i}",
            "address": f"10.0.{i % 3}.{250 - 20 * i}",
            "num_cpus": 9,
            "num_accelerators": (4, 8)[i % 2],
            "accelerator_type": "NV_GPU",
        }
        for i in range(8)
    ]
    (tmp_path / "config.yaml").write_text(
        "roost: {groups: {actor_num_gpus_per_node: 4, rollout_num_gpus: 36, rollout_num_gpus_per_engine: 4}}\n"
    )
    answers = set()
    for env in ({}, {"LC_ALL": "tr_TR.UTF-8"}, {"MALLOC_PERTURB_": "165"}, {"TZ": "Pacific/Kiritimati", "RANK": "3"}):
        env |= {
            name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS") or name == "LD_PRELOAD"
        }
        (tmp_path / "snapshot.json").write_text(json.dumps({"cluster": {"nodes": dice.sample(nodes, len(nodes))}}))
        for words in ([], ["--json"]):
            command = [ROOST, "groups", *words, "--cluster", "snapshot.json", "config.yaml"]
            done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, timeout=60, check=True)
            answers.add((bool(words), done.stdout, done.stderr))
    assert len(answers) == 2


def test_a_large_layout_is_laid_out() -> None:
    layout = layout_of(actor_num_nodes=0, rollout_num_gpus=20000, rollout_num_gpus_per_engine=4)
    assert len(layout.engines) == 5000 and layout.engines[-1].parts[0].slot == 19996


@pytest.mark.parametrize("off", [False, "", None])
def test_texts_that_are_off_are_left_out(off: object) -> None:
    assert (
        layout_of(rollout_num_gpus=8, load_debug_rollout_data=off, sglang_config=off, hf_checkpoint=off).layout
        == "disaggregated"
    )


@pytest.mark.parametrize("args", [None, 5, 1.5, True, "rollout_num_gpus", b"x", [8], (8,)])
def test_args_that_have_no_arguments_are_refused(args: Any) -> None:
    with pytest.raises(TypeError, match="^args must be an object"):
        get_placement_group_layout(args)


def test_args_may_be_a_mapping() -> None:
    assert get_placement_group_layout({"rollout_num_gpus": 8, "lr": 0.1}) == (16, 8)
    assert get_placement_group_layout(OmegaConf.create({"rollout_num_gpus": "${size}", "size": 8})) == (16, 8)
    with pytest.raises(roost.Error, match="^rollout_num_gpus: .*'size' not found"):
        get_placement_group_layout(OmegaConf.create({"rollout_num_gpus": "${size}"}))


def test_texts_of_args_are_literal() -> None:
    for text in ("/m/${MODEL}", "${rollout_num_gpus}", "${", "\\${x}"):
        assert layout_of(rollout_num_gpus=8, hf_checkpoint=text).num_gpus == 16
        with pytest.raises(roost.Error) as caught:
            layout_of(rollout_num_gpus=8, profile=text)
        assert f"not '{text}'" in str(caught.value).replace("\\\\", "\\")


@pytest.mark.parametrize("cluster", ["2x8\0junk", "", Path("2x8\0")])
def test_clusters_that_are_no_text_are_refused(cluster: Any) -> None:
    with pytest.raises(roost.Error, match="^cluster must be a spec, a path or 'local'"):
        get_engine_layout(Namespace(rollout_num_gpus=8), cluster)


def test_nodes_are_told_once() -> None:
    with pytest.raises(TypeError, match="cluster and slots_of_node"):
        get_engine_layout(Namespace(rollout_num_gpus=8), "1x4", slots_of_node=[16])
    with pytest.raises(TypeError, match="slots_of_node and order"):
        get_engine_layout(Namespace(rollout_num_gpus=8), slots_of_node=[16], order=order_bundles([]))
    with pytest.raises(TypeError, match=r"order must be what order_bundles\(\) answers, not \[0\]"):
        get_engine_layout(Namespace(rollout_num_gpus=8), order=[0])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("slots", "error", "words"),
    [
        (5, TypeError, "slots_of_node must be a sequence of ints, not 5"),
        ("88", TypeError, "slots_of_node must be a sequence of ints"),
        ([8, 1.5], TypeError, r"slots_of_node\[1\] must be an int"),
        ([True], TypeError, r"slots_of_node\[0\] must be an int"),
        ([8, -1], roost.Error, r"slots_of_node\[1\] must not be negative"),
        ([2**40], roost.Error, r"slots_of_node\[0\] is out of range"),
    ],
)
def test_slots_that_are_no_counts_are_refused(slots: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        get_engine_layout(Namespace(rollout_num_gpus=8), slots_of_node=slots)


def test_every_cure_of_a_straddling_engine_is_one() -> None:
    """What the hint names is done, and lays out."""
    told = {"engine": 0, "placeholder": 0}
    for per_node, ahead, size, engines in itertools.product((4, 6, 8), range(8), range(2, 9), (1, 2, 3)):
        if size > per_node:
            continue
        before = [{"worker_type": "regular", "num_gpus": ahead, "num_gpus_per_engine": 1}] if ahead else []
        count = size * engines

        def lay_out(groups: list[dict[str, Any]], per_node: int = per_node) -> Any:
            total = sum(group["num_gpus"] for group in groups)
            return layout_of(
                debug_rollout_only=True,
                num_gpus_per_node=per_node,
                rollout_num_gpus=total,
                sglang=[{"name": "a", "server_groups": groups}],
            )

        last = {"worker_type": "regular", "num_gpus": count, "num_gpus_per_engine": size}
        try:
            lay_out([*before, last])
        except roost.Error as error:
            if "would take slots" not in str(error):
                continue
            smaller = re.search(r"use (\d+) GPUs? per engine", error.hint)
            assert smaller
            lay_out([*before, last | {"num_gpus_per_engine": int(smaller[1])}])
            told["engine"] += 1
            gap = re.search(r"a placeholder of (\d+) GPUs? before it", error.hint)
            if gap:
                lay_out([*before, {"worker_type": "placeholder", "num_gpus": int(gap[1])}, last])
                told["placeholder"] += 1
    assert min(told.values()) > 20, told
