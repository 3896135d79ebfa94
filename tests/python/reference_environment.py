"""What a process of a plan is started with, written from docs/reference/environment.md and RLinf's behaviour, not from the C.

process_start() takes a process as the plan's own document has it; what the plan itself must be is
reference.py's business.
"""

import re
from typing import Any

from reference_ranks import parse_ranks

PATH_LIKE = {
    "PATH",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CMAKE_PREFIX_PATH",
    "PKG_CONFIG_PATH",
    "CPATH",
}
# The variable that isolates, and what tells Ray to keep off it.
VENDOR = {
    "NV_GPU": ("CUDA_VISIBLE_DEVICES", ["CUDA_VISIBLE_DEVICES"]),
    "KUNLUN_XPU": ("CUDA_VISIBLE_DEVICES", ["CUDA_VISIBLE_DEVICES"]),
    "AMD_GPU": ("HIP_VISIBLE_DEVICES", ["ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"]),
    "NPU": ("ASCEND_RT_VISIBLE_DEVICES", ["ASCEND_RT_VISIBLE_DEVICES"]),
    "INTEL_GPU": ("ONEAPI_DEVICE_SELECTOR", ["ONEAPI_DEVICE_SELECTOR"]),
    "MUSA_GPU": ("MUSA_VISIBLE_DEVICES", ["MUSA_VISIBLE_DEVICES"]),
}
# Where the library of each vendor reads its network interfaces from; RLINF_COMM_NET_DEVICES says which they are.
INTERFACES = {
    "NV_GPU": ["NCCL_SOCKET_IFNAME"],
    "AMD_GPU": ["NCCL_SOCKET_IFNAME"],
    "NPU": ["HCCL_SOCKET_IFNAME"],
    "INTEL_GPU": ["CCL_MNIC_NAME"],
    "MUSA_GPU": ["MCCL_SOCKET_IFNAME"],
    "KUNLUN_XPU": ["BKCL_SOCKET_IFNAME"],
    "NO_ACCEL": [],
}
SECRET = re.compile("KEY|TOKEN|SECRET|PASS", re.I)


def local_rank(rule: str, process: dict[str, Any]) -> tuple[int, int]:
    if rule == "torchrun":
        return process["local_rank"], process["local_world_size"]
    if rule == "zero" or (rule == "rlinf" and process["isolate_accelerator"]):
        return 0, 1
    return process["local_accelerator_rank"], process["local_world_size"]


def own_variables(
    component: dict[str, Any],
    process: dict[str, Any],
    node: dict[str, Any],
    launch: dict[str, Any],
    caller: dict[str, str],
) -> dict[str, str]:
    """What roost sets and nobody else may."""
    name = component["name"]
    rank, size = local_rank(component["local_rank_rule"], process)
    kind, model = process["accelerator_type"], node["accelerator_model"]
    values: dict[str, Any] = {
        "GROUP_NAME": name,
        "WORKER_NAME": f"{name}:{process['rank']}",
        "RANK": process["rank"],
        "WORLD_SIZE": component["world_size"],
        "NODE_RANK": process["placement_node_rank"],
        "GROUP_RANK": process["placement_node_rank"],
        "CLUSTER_NODE_RANK": process["cluster_node_rank"],
        "NODE_LOCAL_RANK": process["local_rank"],
        "NODE_LOCAL_WORLD_SIZE": process["local_world_size"],
        "LOCAL_RANK": rank,
        "LOCAL_WORLD_SIZE": size,
        "LOCAL_ACCELERATOR_RANK": process["local_accelerator_rank"],
        "VISIBLE_DEVICES": ",".join(process["visible_accelerators"]),
        "LOCAL_HARDWARE_RANKS": ",".join(map(str, process["local_hardware_ranks"])),
        "NODE_GROUP_LABEL": process["node_group_label"],
        "ACCELERATOR_TYPE": kind,
        "ACCELERATOR_MODEL": f"{kind}:{model}" if model and kind != "NO_ACCEL" else "",
        "ISOLATE_ACCELERATOR": int(process["isolate_accelerator"]),
        "CATCH_SYSTEM_FAILURE": int(caller.get("RLINF_CATCH_FAILURE") == "1"),
        "RAY_ACTOR": 1,
        "CLUSTER_NAMESPACE": "<namespace>",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "<port>",
        "ROOST_COMPONENT": name,
        "ROOST_NAMESPACE": "<namespace>",
        "ROOST_RUN_ID": "<run id>",
    }
    if kind in VENDOR:
        variable, switches = VENDOR[kind]
        prefix = "level_zero:" if kind == "INTEL_GPU" else ""  # oneAPI wants the backend before the numbers
        values[variable] = prefix + values["VISIBLE_DEVICES"]
        values |= {f"RAY_EXPERIMENTAL_NOSET_{switch}": 1 for switch in switches}
    for port, want in launch.get("ports", {}).items():
        count = want if isinstance(want, int) else want.get("count", 1)
        values[f"ROOST_PORT_{port.upper()}"] = "<port>"
        values[f"ROOST_PORT_{port.upper()}_COUNT"] = count
    return {key: str(value) for key, value in values.items()}


def expand(text: str, values: dict[str, str]) -> str:
    return re.sub(r"%%|%\{(\w+)\}", lambda found: "%" if found[1] is None else values[found[1]], text)


def layer(layers: dict[str, str], over: dict[str, str], under: dict[str, str], replaces: bool) -> None:
    """Puts `over` on `layers`, with `under` below them both; lists of folders are joined."""
    for name, value in over.items():
        if name in PATH_LIKE and not replaces:
            old = layers.get(name, under.get(name, ""))
            entries = [entry for entry in f"{value}:{old}".split(":") if entry]
            value = ":".join(dict.fromkeys(entries))
        layers[name] = value


def find_env_config(config: dict[str, Any], process: dict[str, Any]) -> dict[str, Any]:
    section = config["cluster"]
    everything = list(range(int(section["num_nodes"])))
    for group in section.get("node_groups", []):
        if str(group["label"]) != process["node_group_label"]:
            continue
        nodes = parse_ranks(group["node_ranks"], everything)
        for env_config in group.get("env_configs", []):
            if process["cluster_node_rank"] in parse_ranks(env_config["node_ranks"], nodes):
                return dict(env_config)
    return {}


def defaults(layers: dict[str, str], caller: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    """What NVIDIA processes get unless the config says otherwise."""
    found = {}
    if layers.get("MUJOCO_GL", caller.get("MUJOCO_GL", "")).lower() not in ("osmesa", "glx"):
        found["EGL_DEVICE_ID"] = found["MUJOCO_EGL_DEVICE_ID"] = own["LOCAL_ACCELERATOR_RANK"]
    if caller.get("NCCL_CUMEM_ENABLE", "") in ("", "0"):
        found["NCCL_CUMEM_ENABLE"] = "0"
    return {name: value for name, value in found.items() if name not in layers}


def process_start(
    document: dict[str, Any],
    config: dict[str, Any],
    component: dict[str, Any],
    process: dict[str, Any],
    caller: dict[str, str],
    folder: str,
) -> dict[str, Any]:
    """command, env and cwd as `plan --commands --json` shows them."""
    launch = config.get("roost", {}).get("launch", {}).get(component["name"], {})
    node = document["cluster"]["nodes"][process["cluster_node_rank"]]
    own = own_variables(component, process, node, launch, caller)
    env_config = find_env_config(config, process)
    replaces = caller.get("RLINF_PATH_ENV_MERGE_MODE", "").lower() == "override"
    layers: dict[str, str] = {}
    for variable in env_config.get("env_vars", []):
        layer(layers, {name: str(value) for name, value in variable.items()}, caller, replaces)
    written = {name: expand(str(value), own) for name, value in launch.get("env", {}).items()}
    layer(layers, written, caller, replaces)
    if process["accelerator_type"] == "NV_GPU":
        layers |= defaults(layers, caller, own)
    devices = layers.get("RLINF_COMM_NET_DEVICES", caller.get("RLINF_COMM_NET_DEVICES", ""))
    for name in ["GLOO_SOCKET_IFNAME", *INTERFACES[process["accelerator_type"]]]:
        if devices and name not in layers and name not in caller:
            layers[name] = devices
    layers |= own
    command = [expand(str(word), own) for word in launch.get("command", [])]
    if command and command[0] in ("python", "python3"):
        command[0] = env_config.get("python_interpreter_path", command[0])
    cwd = launch.get("cwd")
    return {
        "command": command or None,
        "env": {name: "***" if SECRET.search(name) else layers[name] for name in layers},
        "cwd": cwd if cwd is None or cwd.startswith("/") else f"{folder}/{cwd}",
    }
