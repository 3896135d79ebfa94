"""Same input, same bytes: whatever order nodes come in, whatever the locale, the environment, the
address layout and the folder are.

ROOST  the program (default build/roost)
"""

import ctypes
import json
import os
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
SHUFFLES = 30
# What a sanitized program needs to be told; no part of what is tested.
SANITIZERS = {name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}

CONFIG = """\
cluster:
  num_nodes: 12
  node_groups:
    - label: train
      node_ranks: 0-7
      env_configs:
        - node_ranks: 0-3
          env_vars:
            - GLOO_SOCKET_IFNAME: eth0
    - label: robots
      node_ranks: 8-11
      hardware:
        type: Franka
        configs:
          - {node_rank: 8, robot_ip: 10.0.0.1}
          - {node_rank: 11, robot_ip: 10.0.0.2}
  component_placement:
    actor,critic: 0-31
    rollout:
      node_group: train
      placement: 32-63:0-15
    env: {node_group: robots, placement: 0-1:0-3}
    agent: {node_group: node, placement: "0-11:0-29"}
    reward: {node_group: "train,robots", placement: all}
"""


def node(**fields: Any) -> dict[str, Any]:
    return {"num_accelerators": 8, "accelerator_type": "NV_GPU", **fields}


V4 = [node(address=f"10.0.{i // 3}.{250 - 20 * i}", id=f"n{i}") for i in range(12)]
V6 = [node(address=f"fd00::{0x9 + 7 * i:x}", id=f"n{i}") for i in range(12)]
NAMES = [node(address=f"gpu-{i}-rack{i % 3}.example", id=f"n{i}") for i in range(12)]
MIXED = [*V4[:4], *V6[:4], *NAMES[:4]]
SAME_ADDRESS = [node(address="10.0.0.1", id=f"id-{i}") for i in range(12)]
ONLY_IDS = [node(id=f"host{i}") for i in range(12)]
UNLIKE = [
    {**it, "num_accelerators": 8, "accelerator_type": ("NV_GPU", "AMD_GPU", "NPU")[i % 3]} for i, it in enumerate(V4)
]
LISTS = {
    "v4": V4,
    "v6": V6,
    "names": NAMES,
    "mixed": MIXED,
    "same-address": SAME_ADDRESS,
    "only-ids": ONLY_IDS,
    "unlike": UNLIKE,
}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    return path


def plan(config: str | Path, *words: str | Path, env: dict[str, str] | None = None, **how: Any) -> bytes:
    """Everything `plan` says, both ways."""
    answers = []
    for form in ([], ["--json"]):
        command = [ROOST, "plan", *form, *words, config]
        done = subprocess.run(command, env=SANITIZERS | (env or {}), capture_output=True, timeout=60, **how)
        assert done.returncode == 0, done.stderr.decode()
        answers += [done.stdout, done.stderr]
    return b"\0".join(answers)


@pytest.mark.parametrize("with_ranks", [False, True])
@pytest.mark.parametrize("name", LISTS)
def test_the_order_of_a_snapshot_is_of_no_account(tmp_path: Path, config: Path, name: str, with_ranks: bool) -> None:
    nodes = LISTS[name]
    if with_ranks:
        ranks = random.Random(name).sample(range(len(nodes)), len(nodes))
        nodes = [{**it, "node_rank": rank} for it, rank in zip(nodes, ranks, strict=True)]
    dice = random.Random(1)
    answers = set()
    for _ in range(SHUFFLES):
        nodes = dice.sample(nodes, len(nodes))
        nodes = [dict(dice.sample(list(it.items()), len(it))) for it in nodes]
        snapshot = tmp_path / "snapshot.json"
        snapshot.write_text(json.dumps({"roost": 1, "cluster": {"nodes": nodes}}))
        answers.add(plan(config, "--cluster", snapshot))
    assert len(answers) == 1


def test_nodes_come_in_the_order_of_their_addresses(tmp_path: Path, config: Path) -> None:
    """The shuffled lists agree; here is what they agree on."""
    snapshot = tmp_path / "snapshot.json"
    snapshot.write_text(json.dumps({"cluster": {"nodes": MIXED[::-1]}}))
    command = [ROOST, "plan", "--json", "--cluster", snapshot, config]
    done = subprocess.run(command, env=SANITIZERS, capture_output=True, check=True, timeout=60)
    addresses = [it["address"] for it in json.loads(done.stdout)["cluster"]["nodes"]]
    by_value = sorted(V4[:4], key=lambda it: [int(part) for part in it["address"].split(".")])
    assert addresses == [it["address"] for it in [*by_value, *V6[:4], *NAMES[:4]]]


def locales() -> list[str]:
    there = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout.split()
    return ["C", "C.UTF-8", "POSIX", "tr_TR.UTF-8", "de_DE.UTF-8", "ar_EG.UTF-8", "nonsense", "", *there]


@pytest.mark.parametrize(
    "env",
    [
        *[{"LC_ALL": locale, "LANG": locale, "LANGUAGE": locale} for locale in locales()],
        {"TZ": "Pacific/Kiritimati"},
        {"TZ": ":/nonsense"},
        {"HOME": "/nowhere", "USER": "someone", "PATH": "/nowhere", "PWD": "/nowhere"},
        {"RANK": "3", "WORLD_SIZE": "9", "CUDA_VISIBLE_DEVICES": "5", "MASTER_ADDR": "h", "NODE_RANK": "1"},
        {"RLINF_NODE_RANK": "7", "ROOST_NODE_RANK": "4", "RAY_ADDRESS": "auto"},
        {"MALLOC_PERTURB_": "165"},
        {"MALLOC_PERTURB_": "90", "MALLOC_ARENA_MAX": "1", "MALLOC_TOP_PAD_": "1000000"},
        {"COLUMNS": "80"},
        {f"NOISE_{i}": "x" * i for i in range(500)},
    ],
    ids=lambda env: next(iter(env.items()))[0] + "=" + next(iter(env.items()))[1][:20],
)
def test_the_environment_is_of_no_account(config: Path, env: dict[str, str]) -> None:
    assert plan(config, "--cluster", "12x8", env=env) == plan(config, "--cluster", "12x8")


def test_the_address_layout_is_of_no_account(config: Path) -> None:
    no_random = 0x0040000  # ADDR_NO_RANDOMIZE
    personality = ctypes.CDLL(None).personality
    fixed = plan(config, "--cluster", "12x8", preexec_fn=lambda: personality(no_random))
    assert {plan(config, "--cluster", "12x8") for _ in range(5)} == {fixed}


def test_the_folder_is_of_no_account(tmp_path: Path) -> None:
    answers = set()
    for folder in (tmp_path / "a", tmp_path / "b" / "c" / ("d" * 100)):
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(CONFIG)
        answers.add(plan("config.yaml", "--cluster", "12x8", cwd=folder))
    assert len(answers) == 1


def test_a_file_and_standard_input_are_the_same(config: Path) -> None:
    """The name aside: it is in warnings."""
    piped = plan("-", "--cluster", "12x8", input=CONFIG.encode())
    piped = re.sub(rb"(^|[\n\0])-(?=:\d)", rb"\1config.yaml", piped)
    assert piped == plan("config.yaml", "--cluster", "12x8", cwd=config.parent)


def test_a_plan_is_a_snapshot_of_its_own_cluster(tmp_path: Path, config: Path) -> None:
    """Round trip: planning against a plan's cluster gives the same plan."""
    command = [ROOST, "plan", "--json", "--cluster", "12x8", config]
    first = subprocess.run(command, env=SANITIZERS, capture_output=True, check=True, timeout=60).stdout
    (tmp_path / "plan.json").write_bytes(first)
    command[4] = str(tmp_path / "plan.json")
    assert subprocess.run(command, env=SANITIZERS, capture_output=True, check=True, timeout=60).stdout == first
