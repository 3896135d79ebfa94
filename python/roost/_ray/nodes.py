"""Probes the nodes of a Ray cluster: one short task on each node asks the C library there. The answers become a snapshot, and
the C library here decides what each node has and orders the nodes."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.session import has_token

# The node of a Ray that is started for one program and ends with it: planned for one that has ended, run on the next.
LOCAL_NODE = "local"

PROBE_SECONDS = 120.0
LEAST_SECONDS = 10.0
PROBE_TRIES = 6  # messages may be lost; a probe that dies by itself still fails soon

# What the C library on a node finds there, and the variables that it is given its rank by.
PROBED = ("accelerator_type", "accelerator_model", "num_accelerators")
RANKS = ("ROOST_NODE_RANK", "RLINF_NODE_RANK")


def probe(interpreters: Sequence[str] = ()) -> dict[str, Any]:
    """Runs on the node. Ray sends it by value, so that it can report a node without roost."""
    import contextlib
    import os
    import shutil
    import sys

    found: dict[str, Any] = {"python": sys.executable, "env": dict(os.environ), "pid": os.getpid()}
    found["missing"] = [path for path in interpreters if shutil.which(os.path.expanduser(path)) is None]
    try:
        from ray._private.authentication.authentication_utils import is_token_auth_enabled

        found["has_token"] = bool(is_token_auth_enabled())
    except ImportError:
        found["has_token"] = False
    try:
        from roost import _roost as library

        found["version"] = library.version
        found["node"] = library.Cluster(b"local").node(0)
        with contextlib.suppress(ImportError):  # of another version of roost, which check_probe reports
            from roost._ray.environment import node_environment, own_place

            found["env"], found["place"] = node_environment(), own_place()
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


# cloudpickle sends what belongs to the main script by value.
probe.__module__ = "__main__"


def answer_seconds(wait: float) -> float:
    """How long nodes that are there may take to answer, where others are waited for so long."""
    return max(LEAST_SECONDS, min(wait, PROBE_SECONDS))


def probe_nodes(
    ray: Any, nodes: Sequence[dict[str, Any]], timeout: float, interpreters: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """What the probe of each node found, in the order given, and which of these interpreters the node lacks."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    task = ray.remote(num_cpus=0, max_retries=PROBE_TRIES)(probe)  # asking again changes nothing
    given = (interpreters,) if interpreters else ()
    asked = [
        task.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False), name="roost-probe"
        ).remote(*given)
        for node in nodes
    ]
    ready, waiting = ray.wait(asked, num_returns=len(asked), timeout=timeout)
    if waiting:
        where = ", ".join(nodes[asked.index(ref)]["NodeManagerAddress"] for ref in waiting)
        for ref in waiting:
            ray.cancel(ref, force=True)
        raise fault(
            Timeout,
            f"no answer from the probe on {where} after {timeout:g} seconds",
            hint="look at the raylet's log there, or leave the node out",
        )
    answers = []
    for node, ref in zip(nodes, asked, strict=True):
        address = node["NodeManagerAddress"]
        try:
            answer = ray.get(ref)
        except Exception as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise fault(
                EngineError,
                f"the probe on node {address} failed: {words[0]}",
                hint="the node may just have been lost: `ray status` lists the nodes",
            ) from error
        check_probe(address, answer)
        answers.append(answer)
    return answers


def check_probe(address: str, answer: dict[str, Any]) -> None:
    """The same roost everywhere, or none of it works as planned."""
    if "error" in answer:
        raise fault(
            EngineError,
            f"node {address} has no working roost for {answer['python']}: {answer['error']}",
            hint=f"install roost {_roost.version} there, in a copy of its sources: {answer['python']} -m pip install .",
        )
    if answer["version"] != _roost.version:
        raise fault(
            EngineError,
            f"node {address} has roost {answer['version']}, but this is {_roost.version}",
            hint="install the same version on every node",
        )
    if (
        has_token() and not answer["has_token"]
    ):  # its messages would be refused, and actors there would end before they start
        raise fault(
            EngineError,
            f"node {address} was started without a token, but this process wants one",
            hint="set RAY_AUTH_MODE=disabled for this process, or start every node with RAY_AUTH_MODE=token",
        )


def interpreters_of(config: _roost.Config | None) -> list[tuple[str, list[int], str]]:
    """The interpreters that node groups name: group, nodes, path. A bare name is left out where the group sets PATH: it may be
    found there."""
    if config is None:
        return []
    return [
        (label, ranks, path)
        for label, _, _, _, envs in config.groups
        for ranks, variables, path in envs
        if path and ("/" in path or "PATH" not in variables)
    ]


def check_interpreters(
    config: _roost.Config | None, cluster: _roost.Cluster, facts: Mapping[str, dict[str, Any]]
) -> None:
    """Ray would try to start one that is not there until the time is up."""
    for label, ranks, path in interpreters_of(config):
        for rank in ranks:
            node = cluster.node(rank)
            if path in facts[node["id"]]["missing"]:
                raise fault(
                    EngineError,
                    f"node {rank} ({node['address']}) has no interpreter '{path}' that can be executed, which node group '{label}' names",
                    hint=f"install it there, or correct python_interpreter_path of '{label}'",
                )


def name_local_node(entries: Sequence[dict[str, Any]], node_id: str) -> None:
    """A Ray that was started here has one node, with an id that no plan can know."""
    for entry in entries:
        if entry.get("id") == LOCAL_NODE:
            entry["id"] = node_id


def not_there(node_rank: int, node_id: str | None) -> EngineError:
    return fault(
        EngineError,
        f"node {node_rank} of the plan ({node_id}) is not in the Ray cluster",
        hint="plan against the nodes that are there now: `roost probe --engine ray`",
    )


def resource_of(resources: Mapping[str, float]) -> str:
    """What Ray counts the accelerators of a node as."""
    return _roost.ray_resource(resources.get("GPU", 0), resources.get("NPU", 0))


def rank_texts(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that may give a node its rank. Bytes that JSON cannot hold are escaped: no rank has them."""
    return {name: env[name].encode(errors="backslashreplace").decode() for name in RANKS if name in env}


def snapshot(nodes: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]) -> str:
    """The nodes in any order, with what their probes and Ray report. The C library decides which of the two counts."""
    described = []
    for node, answer in zip(nodes, answers, strict=True):
        entry = {
            "id": node["NodeID"],
            "address": node["NodeManagerAddress"],
            "num_cpus": int(node["Resources"].get("CPU", 0)),
            "head": "node:__internal_head__" in node["Resources"],
            "ray": {
                "resources": node["Resources"],
                "accelerator_type": (node.get("Labels") or {}).get("ray.io/accelerator-type"),
            },
            "env": rank_texts(answer["env"]),
        }
        described.append(entry | {name: answer["node"][name] for name in PROBED})
    return json.dumps({"roost": 1, "cluster": {"nodes": described}})


def build_cluster(text: str, config: _roost.Config | None, num_nodes: int) -> _roost.Cluster:
    """Settled, ordered, cut and grouped by the C library."""
    return _roost.Cluster(b"the Ray cluster", config, num_nodes, snapshot=text)
