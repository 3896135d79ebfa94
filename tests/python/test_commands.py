"""`plan --commands --json` shows what the reference model says processes are started with.

ROOST, ROOST_EXAMPLES and ROOST_RANDOM as in test_compare.py; a quarter of its examples by default.
"""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chance import PROFILE
from generate import Case, cases
from generate_cluster import Dice
from reference_environment import PATH_LIKE, process_start
from test_compare import EXAMPLES, ROOST, folder, walk

__all__ = ["folder"]

WORDS = [
    "x",
    "",
    "100%",
    "a%%b",
    "%{RANK}/%{WORLD_SIZE}",
    "%{VISIBLE_DEVICES}",
    "%{WORKER_NAME}%{NODE_RANK}",
    "%%{RANK}",
]
FOLDERS = ["/a", "/b:/c", ":/c::/a:", "/p/%{LOCAL_RANK}:/b", "/c:/c"]
VARIABLES = [
    "LOG",
    "LOG1",
    "MUJOCO_GL",
    "EGL_DEVICE_ID",
    "NCCL_CUMEM_ENABLE",
    "RLINF_COMM_NET_DEVICES",
    "GLOO_SOCKET_IFNAME",
    "NCCL_SOCKET_IFNAME",
    "API_KEY",
    "my_Password",
    *sorted(PATH_LIKE),
]
CALLER = {
    "PATH": ["/usr/bin:/bin", "/a", ":/b:", ""],
    "LD_LIBRARY_PATH": ["/a:/z"],
    "CPATH": ["/c"],
    "RANK": ["9"],
    "LOG1": ["inherited"],
    "CUDA_VISIBLE_DEVICES": ["3"],
    "EGL_DEVICE_ID": ["7"],
    "NCCL_CUMEM_ENABLE": ["0", "1", "", "2"],
    "MUJOCO_GL": ["egl", "osmesa", "GLX"],
    "RLINF_CATCH_FAILURE": ["1", "0"],
    "RLINF_COMM_NET_DEVICES": ["eth0", "eth0,eth1", ""],
    "GLOO_SOCKET_IFNAME": ["lo", "eth0", ""],
    "CCL_MNIC_NAME": ["eth1"],
    "RLINF_PATH_ENV_MERGE_MODE": ["override", "OVERRIDE", "append", "nonsense"],
    "ROOST_PORT_HTTP": ["1"],
    "LISTEN_FDS": ["1"],
}


def draw_variables(dice: Dice, has_words: bool) -> dict[str, str]:
    found = {}
    for name in dice.sample(VARIABLES, dice.number(0, 4)):
        value = dice.pick(FOLDERS if name in PATH_LIKE else ["glx", "EGL"] if name == "MUJOCO_GL" else WORDS)
        # In env_configs a percent sign is a percent sign.
        found[name] = value if has_words or "{" not in value else value.replace("%{", "{")
    return found


def draw_launch(dice: Dice) -> dict[str, Any]:
    launch: dict[str, Any] = {}
    if dice.chance(80):
        words = [dice.pick(WORDS) for _ in range(dice.number(0, 3))]
        launch["command"] = [dice.pick(["python", "./train", "python3", "/bin/python"]), *words]
    if dice.chance(60):
        launch["env"] = draw_variables(dice, True)
    if dice.chance(40):
        launch["ports"] = {"http": dice.pick([1, {"count": 2}, {"hand_over": True}]), "Dist_init": 31}
        launch.setdefault("command", ["x"]).append("%{ROOST_PORT_DIST_INIT}+%{ROOST_PORT_DIST_INIT_COUNT}")
    if dice.chance(50):
        launch["local_rank"] = dice.pick(["rlinf", "torchrun", "zero", "device"])
    if dice.chance(30):
        launch["isolate"] = dice.chance(30)
    if dice.chance(30):
        launch["cwd"] = dice.pick(["work", "/tmp", "a/b"])
    return launch


def draw_env_configs(dice: Dice) -> list[dict[str, Any]]:
    config: dict[str, Any] = {"node_ranks": "all"}
    variables = draw_variables(dice, False) | ({"RANK": "5"} if dice.chance(10) else {})
    config["env_vars"] = [{name: value} for name, value in variables.items()]
    if dice.chance(50):
        config["python_interpreter_path"] = "/opt/python"
    return [config]


@st.composite
def started(draw: st.DrawFn) -> tuple[Case, dict[str, str]]:
    """A case with launch settings, and the environment of who starts it."""
    dice = Dice(draw)
    case = draw(cases())
    section = case.config["cluster"]
    names = [name.strip() for key in section.get("component_placement", {}) for name in str(key).split(",")]
    case.config["roost"] = {"launch": {name: draw_launch(dice) for name in names if dice.chance(80)}}
    for group in section.get("node_groups", []):
        if isinstance(group, dict) and "env_configs" not in group and dice.chance(50):
            group["env_configs"] = draw_env_configs(dice)
    caller = {name: dice.pick(values) for name, values in CALLER.items() if dice.chance(40)}
    return case, caller


def run_commands(case: Case, caller: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "commands.yaml").write_text(case.config_text)
    (folder / "cluster.json").write_text(json.dumps(case.machines.snapshot))
    words = ["plan", "--commands", "--json", "--cluster", case.machines.spec or str(folder / "cluster.json")]
    words += ["--mode", case.mode] + ([] if case.isolate else ["--no-isolate"])
    command = [str(ROOST), *words, str(folder / "commands.yaml")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=caller)


@pytest.mark.skipif(not ROOST.exists(), reason="roost is not built")
def test_processes_are_started_as_the_reference_model_says(folder: Path) -> None:
    seen: Counter[str] = Counter()

    @settings(PROFILE, max_examples=max(EXAMPLES // 4, 1))
    @given(drawn=started())
    def compare(drawn: tuple[Case, dict[str, str]]) -> None:
        case, caller = drawn
        run = run_commands(case, caller, folder)
        assert run.returncode in (0, 3, 4), run.stderr
        assume(run.returncode == 0)
        document = json.loads(run.stdout)
        for component in document["components"]:
            for process in component["processes"]:
                expected = process_start(document, case.config, component, process, caller, str(folder))
                got = {key: process[key] for key in expected}
                where = f"{component['name']}/{process['rank']}"
                differences = (
                    [] if got == expected else list(walk(got, expected, where)) or [f"{where}: {got} != {expected}"]
                )
                assert not differences, "\n".join(
                    [*differences, case.config_text, str(caller), case.machines.spec or "snapshot"]
                )
                seen.update(["processes", process["accelerator_type"], component["local_rank_rule"]])

    compare()
    wanted = {
        "NV_GPU",
        "AMD_GPU",
        "NPU",
        "INTEL_GPU",
        "MUSA_GPU",
        "KUNLUN_XPU",
        "NO_ACCEL",
        "rlinf",
        "torchrun",
        "zero",
        "device",
    }
    if EXAMPLES >= 1200:  # fewer are a sample, not a survey
        assert not [word for word in wanted if seen[word] < 5], seen
