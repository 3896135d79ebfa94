"""Nodes of a Ray cluster in their order, with their accelerators: as they are listed, and as they come up."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from chance import dice
from ray_cluster import WAIT, RayCluster

pytestmark = pytest.mark.ray

RESTARTS = 20 if os.environ.get("ROOST_SOAK") == "1" else 5


def node(address: str, gpus: float = 8, head: bool = False, **labels: str) -> dict[str, Any]:
    resources = {"CPU": 4.0} | ({"GPU": gpus} if gpus else {}) | ({"node:__internal_head__": 1.0} if head else {})
    return {
        "NodeID": f"id-{address}",
        "NodeManagerAddress": address,
        "Alive": True,
        "Resources": resources,
        "Labels": labels,
    }


def answer(accelerators: int = 0, kind: str = "NO_ACCEL", **env: str) -> dict[str, Any]:
    return {"node": {"num_accelerators": accelerators, "accelerator_type": kind, "accelerator_model": None}, "env": env}


def settle(nodes: list[dict[str, Any]], answers: list[dict[str, Any]]) -> Any:
    from roost._ray.nodes import build_cluster, snapshot

    return build_cluster(snapshot(nodes, answers), None, 0)


def order(nodes: list[dict[str, Any]], answers: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    cluster = settle(nodes, answers)
    found = [cluster.node(rank) for rank in range(cluster.num_nodes)]
    return [(entry["address"], entry["accelerator_type"], entry["num_accelerators"]) for entry in found]


def test_the_head_comes_first_then_addresses_by_value_in_whatever_order_nodes_are_listed() -> None:
    nodes = [node("10.0.0.10"), node("10.0.0.9", head=True), node("10.0.0.2"), node("10.0.0.1", gpus=0)]
    chance = dice()
    for _ in range(20):
        chance.shuffle(nodes)
        assert [address for address, _, _ in order(nodes, [answer() for _ in nodes])] == [
            "10.0.0.9",
            "10.0.0.1",
            "10.0.0.2",
            "10.0.0.10",
        ]


def test_ranks_given_to_nodes_win_and_are_for_all_or_none() -> None:
    import roost

    nodes = [node("10.0.0.1", head=True), node("10.0.0.2"), node("10.0.0.3")]
    ranks = [answer(ROOST_NODE_RANK="2"), answer(RLINF_NODE_RANK="0"), answer(ROOST_NODE_RANK="1", RLINF_NODE_RANK="7")]
    assert [address for address, _, _ in order(nodes, ranks)] == ["10.0.0.2", "10.0.0.3", "10.0.0.1"]
    with pytest.raises(roost.Error, match="in 'the Ray cluster' 1 of 3 nodes have a node_rank"):
        order(nodes, [answer(), answer(RLINF_NODE_RANK="0"), answer()])
    with pytest.raises(
        roost.Error, match="^RLINF_NODE_RANK of node 10.0.0.2 is 'one', which is no node rank"
    ) as caught:
        order(nodes, [answer(), answer(RLINF_NODE_RANK="one"), answer()])
    assert caught.value.code == "schema" and caught.value.line == 0


def test_a_cluster_of_one_node_has_no_order_but_a_rank_that_is_none_is_refused_there_too() -> None:
    import roost

    assert order([node("10.0.0.1")], [answer(ROOST_NODE_RANK="3")]) == [("10.0.0.1", "NV_GPU", 8)]
    with pytest.raises(roost.Error, match="^ROOST_NODE_RANK of node 10.0.0.1 is 'three', which is no node rank"):
        order([node("10.0.0.1")], [answer(ROOST_NODE_RANK="three")])


def test_accelerators_are_the_probes_else_rays_and_the_smaller_where_they_differ() -> None:
    """As src/topology/snapshot_facts_test.c has it, from what Ray and the probe say."""
    rows = [
        (node("10.0.0.1", gpus=8), answer(), ("NV_GPU", 8)),
        (node("10.0.0.1", gpus=0), answer(4, "NV_GPU"), ("NV_GPU", 4)),
        (node("10.0.0.1", gpus=8), answer(4, "NV_GPU"), ("NV_GPU", 4)),
        (node("10.0.0.1", gpus=2), answer(4, "NV_GPU"), ("NV_GPU", 2)),
        (node("10.0.0.1", gpus=0), answer(), ("NO_ACCEL", 0)),
        (node("10.0.0.1", gpus=4, **{"ray.io/accelerator-type": "AMD-Instinct-MI300X"}), answer(), ("AMD_GPU", 4)),
    ]
    said = []
    for listed, told, expected in rows:
        assert order([listed], [told])[0][1:] == expected
        said += settle([listed], [told]).warnings
    assert said == [
        ("counts", "", "node 10.0.0.1 has 4 accelerators, but Ray was told of 8 there: 4 are used", ""),
        ("counts", "", "node 10.0.0.1 has 4 accelerators, but Ray was told of 2 there: 2 are used", ""),
    ]


def test_ranks_and_devices_are_the_same_in_whatever_order_nodes_join(tmp_path: Path) -> None:
    """By explicit node ranks, whoever is the head; and without, as the head comes first and the others by address. The plan
    is made against the live cluster."""
    last_bytes = range(2, 6)
    (tmp_path / "c.yaml").write_text(
        json.dumps(
            {
                "cluster": {
                    "num_nodes": len(last_bytes),
                    "component_placement": {"actor": "all", "rollout": "1:0,3-8:1-6"},
                }
            }
        )
    )
    maps: dict[str, Any] = {}  # and an order that gave it
    chance = dice()
    for turn in range(RESTARTS):
        joining, ranks = chance.sample(last_bytes, len(last_bytes)), {}
        if turn % 2 == 0:
            ranks = {place: {"ROOST_NODE_RANK": str(last - 2)} for place, last in enumerate(joining)}
        else:
            joining.sort(key=lambda last: last != 2)
        with RayCluster(addresses=joining, gpus=joining, variables=ranks) as cluster:
            command = [cluster.environment["ROOST"], "plan", "--engine", "ray", "--json", "c.yaml"]
            done = subprocess.run(
                command,
                env=cluster.driver(ROOST_PYTHON=sys.executable),
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=WAIT,
            )
        assert done.returncode == 0, done.stderr
        plan = json.loads(done.stdout)
        addresses = [node["address"] for node in plan["cluster"]["nodes"]]
        made = json.dumps(
            [
                [
                    component["name"],
                    process["rank"],
                    addresses[process["cluster_node_rank"]],
                    process["visible_accelerators"],
                ]
                for component in plan["components"]
                for process in component["processes"]
            ]
        )
        maps.setdefault(made, [joining, ranks])
    slots = [[f"127.0.0.{last}", [str(number)]] for last in last_bytes for number in range(last)]
    assert list(maps) == [
        json.dumps(
            [["actor", rank, *slot] for rank, slot in enumerate(slots)]
            + [["rollout", rank, *slot] for rank, slot in enumerate([slots[1], *slots[3:9]])]
        )
    ], maps
