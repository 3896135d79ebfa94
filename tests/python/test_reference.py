"""The reference model gives worked examples of RLinf and of tests/seeds, and differs from RLinf where roost does."""

from typing import Any

import pytest

from reference import Answer, plan
from reference_cluster import Cluster, Node, order_nodes, read_groups
from reference_model_parallel import pack
from reference_place import describe
from reference_ranks import Refused, parse_ranks

Groups = list[dict[str, Any]]
A_AND_B: Groups = [{"label": "a", "node_ranks": 0}, {"label": "b", "node_ranks": 1}]


def nodes(*accelerators: int) -> list[dict[str, Any]]:
    return [
        {
            "node_rank": rank,
            "accelerator_type": "NV_GPU" if count else "NO_ACCEL",
            "num_accelerators": count,
        }
        for rank, count in enumerate(accelerators)
    ]


def answer(
    components: dict[str, Any],
    accelerators: tuple[int, ...],
    groups: Groups | None = None,
    mode: str = "hybrid",
    isolate: bool = True,
    **top: Any,
) -> Answer:
    section = {"num_nodes": len(accelerators), "component_placement": components}
    section |= {"node_groups": groups} if groups else {}
    section |= top.pop("cluster", {})
    return plan({"cluster": section, **top}, nodes(*accelerators), mode, isolate)


def code(got: Answer) -> str:
    (word,) = got.codes
    return word


def brief(component: dict[str, Any]) -> str:
    """`n0:0,1 n1:2` = process 0 on node 0 with units 0 and 1, process 1 on node 1 with unit 2."""
    return " ".join(
        f"n{p['cluster_node_rank']}:{','.join(map(str, p['local_hardware_ranks']))}" for p in component["processes"]
    )


def lines(component: dict[str, Any]) -> list[str]:
    """A line per process, less the units."""
    return [
        f"r{p['rank']} n{p['cluster_node_rank']} p{p['placement_node_rank']}"
        f" lar{p['local_accelerator_rank']} lr{p['local_rank']}/{p['local_world_size']}"
        f" vis{','.join(p['visible_accelerators'])} g={p['node_group_label']}"
        for p in component["processes"]
    ]


def on_units(*units: int) -> str:
    return " ".join(f"n0:{unit}" for unit in units)


# Available: 0-9.
@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("0-3", [0, 1, 2, 3]),
        ("0,2,4", [0, 2, 4]),
        ("3,1,2", [1, 2, 3]),
        ("0-3,2-5", [0, 1, 2, 3, 4, 5]),
        (" 0 - 3 , 5 ", [0, 1, 2, 3, 5]),
        ("all", list(range(10))),
        ("ALL", list(range(10))),
        (",0,", [0]),
        ("007", [7]),
        ("+1", [1]),
        (3, [3]),
        ([0, 1], [0, 1]),  # a list is read like a text
    ],
)
def test_plain_ranks_are_read(text: Any, ranks: list[int]) -> None:
    assert parse_ranks(text, list(range(10))) == ranks


@pytest.mark.parametrize(
    ("text", "word"),
    [(text, "rank") for text in ["-1", "1-", "0--3", "0-1-2", "0:1", "1.0", "0x3", "a", "all,0"]]
    + [(text, "rank") for text in [" all", "", ",", "1_0", "3-1", "\u0663"]]
    + [("10", "fit"), ("0-10", "fit"), ("0-2147483647", "fit"), ("2147483648", "limit")],
)
def test_plain_ranks_are_refused(text: str, word: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse_ranks(text, list(range(10)))
    assert refusal.value.code == word


def test_a_rank_in_a_gap_is_not_available() -> None:
    with pytest.raises(Refused, match="fit"):
        parse_ranks("1", [0, 2])


# 8 accelerators on one node.
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("0-7", on_units(*range(8))),
        ("all", on_units(*range(8))),
        ("all:0-15", on_units(*(i // 2 for i in range(16)))),
        ("all:0", "n0:0,1,2,3,4,5,6,7"),
        ("ALL:0-3", "n0:0,1 n0:2,3 n0:4,5 n0:6,7"),
        ("0-3:0-7", on_units(0, 0, 1, 1, 2, 2, 3, 3)),
        ("0-3:0-1", "n0:0,1 n0:2,3"),
        ("0-2,5,7", on_units(0, 1, 2, 5, 7)),
        ("0-1:0-3,3-5,7:7-8", on_units(0, 0, 1, 1, 3, 4, 5, 7, 7)),
        ("0:0-4, 1:5-9", on_units(*[0] * 5, *[1] * 5)),
        ("0-1,2-3:2", "n0:0 n0:1 n0:2,3"),
        ("0-3,4-7", on_units(*range(8))),
        (0, "n0:0"),
        ("0-0", "n0:0"),
        ("  0-1 ,, 2 ,", on_units(0, 1, 2)),
    ],
)
def test_placement_text_places_processes(text: Any, result: str) -> None:
    got = answer({"actor": text}, (8,))
    assert brief(got.components[0]) == result
    assert got.components[0]["strategy"] == "flexible"


@pytest.mark.parametrize(
    ("text", "word"),
    [("0-1,1-2", "rank"), ("1,0", "rank"), ("0-0:0,1-1:2", "rank"), ("0:1,1:0", "rank")]
    + [("0-1:0-1,2-3:1-2", "rank"), ("0-2:0-1", "rank"), ("0-3:0-2", "rank"), ("0:all", "rank")]
    + [("0:", "rank"), (":0", "rank"), ("0:0:0", "rank"), ("", "rank"), ("true", "rank")]
    + [("8", "fit"), ("0-8", "fit"), ("0.5", "rank"), ("0-3,5-7:0-6", "rank")]
    + [("0-1:5-6", "rank")]  # processes start at 0
    + [("0:0-16777216", "limit"), ("99999999999", "limit"), ("0-2147483647:0", "fit")],
)
def test_placement_text_is_refused(text: str, word: str) -> None:
    got = answer({"actor": text}, (8,))
    assert code(got) == word
    assert got.exit == (4 if word == "fit" else 3)


def test_all_components_together_have_a_limit() -> None:
    most = "0:0-16777214"
    for rest, codes in {"0": {"fit"}, "0-1": {"fit", "limit"}}.items():
        section = {"num_nodes": 1, "component_placement": {"actor": most, "rollout": rest}}
        assert plan({"cluster": section}, []).codes == codes


def test_the_seed_example_counts_nine_and_six() -> None:
    got = answer({"actor": "0-1:0-3,3-5,7-10:7-14"}, (8, 8)).components[0]
    assert got["world_size"] == 15
    assert got["hardware_ranks"] == [0, 1, 3, 4, 5, 7, 8, 9, 10]
    assert brief(got) == " ".join([on_units(0, 0, 1, 1, 3, 4, 5, 7, 7), "n1:0 n1:0 n1:1 n1:1 n1:2 n1:2"])
    assert [p["local_world_size"] for p in got["processes"]] == [9] * 9 + [6] * 6


def test_the_seeds_agent_example_spreads_unevenly() -> None:
    value = {"node_group": "node", "placement": "0-1:0-200,2-3:201-511"}
    got = answer({"agent": value}, (8, 8, 8, 8)).components[0]
    on = [p["cluster_node_rank"] for p in got["processes"]]
    assert [on.count(node) for node in range(4)] == [101, 100, 156, 155]
    assert on == sorted(on)
    even = answer({"agent": "0-1:0-199,2-3:200-399"}, (0, 0, 0, 0)).components[0]
    assert [p["local_world_size"] for p in even["processes"]] == [100] * 400


def test_a_process_stays_on_one_node() -> None:
    assert brief(answer({"a": "6-9:0-1"}, (8, 8)).components[0]) == "n0:6,7 n1:0,1"
    assert code(answer({"a": "6-9:0"}, (8, 8))) == "fit"
    # A node cannot be half a process's place either.
    assert code(answer({"a": {"node_group": "node", "placement": "0-1:0"}}, (0, 0))) == "rank"


def test_names_joined_by_commas_are_separate_components() -> None:
    got = answer({"actor, inference": "0-7", "env": 0}, (8,))
    assert [c["name"] for c in got.components] == ["actor", "inference", "env"]
    assert code(answer({"a,b": 0, "b": 1}, (8,))) == "name"
    assert code(answer({"actor,": 0}, (8,))) == "name"


# 3
def test_nodes_without_units_are_skipped() -> None:
    got = answer({"a": "all"}, (2, 0, 4)).components[0]
    assert brief(got) == "n0:0 n0:1 n2:0 n2:1 n2:2 n2:3"
    assert [p["placement_node_rank"] for p in got["processes"]] == [0, 0, 1, 1, 1, 1]


@pytest.mark.parametrize("labels", ["a,b", ["a", "b"]])
def test_ranks_run_through_the_groups_as_written(labels: Any) -> None:
    got = answer({"x": {"node_group": labels, "placement": "2-5"}}, (4, 4), A_AND_B)
    assert lines(got.components[0]) == [
        "r0 n0 p0 lar2 lr0/2 vis2 g=a",
        "r1 n0 p0 lar3 lr1/2 vis3 g=a",
        "r2 n1 p1 lar0 lr0/2 vis0 g=b",
        "r3 n1 p1 lar1 lr1/2 vis1 g=b",
    ]
    back = answer({"x": {"node_group": "b,a", "placement": "3-4"}}, (4, 4), A_AND_B)
    assert lines(back.components[0]) == [
        "r0 n1 p0 lar3 lr0/1 vis3 g=b",
        "r1 n0 p1 lar0 lr0/1 vis0 g=a",
    ]


def test_one_typeless_group_makes_ranks_mean_nodes() -> None:
    groups = [A_AND_B[0], {"label": "cpu", "node_ranks": 1, "ignore_hardware": True}]
    got = answer({"x": {"node_group": "a,cpu", "placement": "all"}}, (4, 4), groups)
    assert got.components[0]["strategy"] == "node"
    assert brief(got.components[0]) == "n0: n1:"
    beyond = answer({"x": {"node_group": "a,cpu", "placement": "0-4"}}, (4, 4), groups)
    assert code(beyond) == "fit"
    shared = answer({"x": {"node_group": "a,node", "placement": "0"}}, (4, 4), groups)
    assert code(shared) == "rank"


def test_robots_are_counted_by_their_group() -> None:
    configs = [{"node_rank": 1}, {"node_rank": 1, "robot_ip": "10.0.0.2"}, {"node_rank": 0}]
    robots = {"label": "r", "node_ranks": "0-1", "hardware": {"type": "Franka", "configs": configs}}
    groups: Groups = [robots, {"label": "same", "node_ranks": 1, "hardware_type": "Franka"}]
    got = answer({"env": {"node_group": "r", "placement": "0-2:0-5"}}, (2, 0), groups)
    assert brief(got.components[0]) == "n0:0 n0:0 n1:0 n1:0 n1:1 n1:1"
    assert lines(got.components[0])[0] == "r0 n0 p0 lar0 lr0/2 vis0,1 g=r"
    assert lines(got.components[0])[2] == "r2 n1 p1 lar-1 lr0/4 vis g=r"
    seen = answer({"env": {"node_group": "same", "placement": "all"}}, (2, 0), groups)
    assert brief(seen.components[0]) == "n1:0 n1:1"
    mixed = answer({"x": {"node_group": "cluster,r", "placement": "1-2:0"}}, (2, 0), groups)
    assert code(mixed) == "hardware"
    ghost = [{"label": "g", "node_ranks": 0, "hardware_type": "Turtle2"}]
    assert code(answer({"x": {"node_group": "g", "placement": 0}}, (2,), ghost)) == "hardware"


# Flexible placement, as far as text can say it.
@pytest.mark.parametrize(
    ("text", "accelerators", "expected"),
    [
        ("0-1:0,2,3", (4,), ["lar0 lr0/3 vis0,1", "lar2 lr1/3 vis2", "lar3 lr2/3 vis3"]),
        ("1-3:0", (4,), ["lar1 lr0/1 vis1,2,3"]),
        ("0,4,5-6:2", (4, 4), ["lar0 lr0/1 vis0", "lar0 lr0/2 vis0", "lar1 lr1/2 vis1,2"]),
        ("0:0-1", (4,), ["lar0 lr0/2 vis0", "lar0 lr1/2 vis0"]),
    ],
)
def test_flexible_table(text: str, accelerators: tuple[int, ...], expected: list[str]) -> None:
    got = lines(answer({"x": text}, accelerators).components[0])
    assert [line.split(" ", 3)[3].removesuffix(" g=cluster") for line in got] == expected


def test_without_isolation_a_process_sees_all_and_leads_with_its_own() -> None:
    got = answer({"x": "2-3"}, (4,), isolate=False).components[0]
    assert lines(got)[1] == "r1 n0 p0 lar3 lr1/2 vis0,1,2,3 g=cluster"
    assert not got["processes"][1]["isolate_accelerator"]


# (first, last, count, stride)
@pytest.mark.parametrize(
    ("call", "accelerators", "labels", "expected"),
    [
        ((0, 3, 1, 1), (4,), "cluster", on_units(0, 1, 2, 3)),
        ((0, 3, 2, 1), (4,), "cluster", "n0:0,1 n0:2,3"),
        ((0, 3, 2, 2), (4,), "cluster", "n0:0,2 n0:1,3"),
        ((0, 7, 2, 2), (8,), "cluster", "n0:0,2 n0:1,3 n0:4,6 n0:5,7"),
        ((0, 7, 1, 2), (8,), "cluster", on_units(*range(8))),
        ((2, 5, 1, 1), (4, 4), "cluster", "n0:2 n0:3 n1:0 n1:1"),
        ((2, 5, 2, 1), (4, 4), "cluster", "n0:2,3 n1:0,1"),
        ((1, 6, 3, 1), (4, 4), "cluster", "n0:1,2,3 n1:0,1,2"),
        ((0, 7, 2, 2), (4, 4), "cluster", "n0:0,2 n0:1,3 n1:0,2 n1:1,3"),
        ((0, 3, 1, 1), (4, 4), "b", "n1:0 n1:1 n1:2 n1:3"),
        ((2, 5, 1, 1), (4, 4), "b,a", "n1:2 n1:3 n0:0 n0:1"),
        ((0, 3, 1, 1), (2, 0, 2), "cluster", "n0:0 n0:1 n2:0 n2:1"),
        ((0, 7, 8, 1), (4, 4), "cluster", "fit"),
        ((3, 4, 2, 1), (4, 4), "cluster", "fit"),  # a process never crosses a node
        ((0, 7, 2, 1), (3, 5), "cluster", "fit"),  # a process never crosses a node
        ((4, 7, 1, 1), (4,), "cluster", "fit"),
        ((0, 3, 1, 5), (4,), "cluster", "rank"),
        ((0, 2, 4, 1), (4,), "cluster", "rank"),
    ],
)
def test_packed_table(
    call: tuple[int, int, int, int], accelerators: tuple[int, ...], labels: str, expected: str
) -> None:
    places = [Node(rank, "NV_GPU", count) for rank, count in enumerate(accelerators)]
    groups, robots, _ = read_groups(A_AND_B if len(places) > 1 else [], len(places))
    cluster = Cluster(places, groups, robots)
    try:
        held = pack(cluster.resources(labels.split(",")), *call)
        got = brief(describe("x", "packed", [labels], [], held, True))
    except Refused as refusal:
        got = refusal.code
    assert got == expected


def test_node_table() -> None:
    assert lines(answer({"x": "0:0-1"}, (0,)).components[0]) == [
        "r0 n0 p0 lar-1 lr0/2 vis g=cluster",
        "r1 n0 p0 lar-1 lr1/2 vis g=cluster",
    ]
    on_nodes = {"node_group": "node", "placement": "0,1:1-2"}
    assert lines(answer({"x": on_nodes}, (2, 2)).components[0]) == [
        "r0 n0 p0 lar0 lr0/1 vis0,1 g=node",
        "r1 n1 p1 lar0 lr0/2 vis0,1 g=node",
        "r2 n1 p1 lar0 lr1/2 vis0,1 g=node",
    ]
    cpu = [{**group, "ignore_hardware": True} for group in A_AND_B]
    got = answer({"x": {"node_group": "a,b", "placement": "0-1"}}, (1, 2), cpu)
    assert lines(got.components[0]) == [
        "r0 n0 p0 lar0 lr0/1 vis0 g=a",
        "r1 n1 p1 lar0 lr0/1 vis0,1 g=b",
    ]
    got = answer({"x": {"node_group": "b", "placement": "0"}}, (1, 2), cpu)
    assert lines(got.components[0]) == ["r0 n1 p0 lar0 lr0/1 vis0,1 g=b"]
    assert code(answer({"x": {"node_group": "node", "placement": "0,2"}}, (1, 2))) == "fit"


def test_nodes_are_ordered_by_the_value_of_their_address() -> None:
    addresses = ["node10", "fd00::10", "10.0.0.10", "node2", "fd00::9", "10.0.0.2"]
    listed = [
        {"id": str(i), "address": address, "accelerator_type": address, "num_accelerators": 1}
        for i, address in enumerate(addresses)
    ]
    order = [node.accelerator_type for node in order_nodes(listed)]
    assert order == ["10.0.0.2", "10.0.0.10", "fd00::9", "fd00::10", "node2", "node10"]
    ranked = [{**node, "node_rank": 5 - i} for i, node in enumerate(listed)]
    assert [node.accelerator_type for node in order_nodes(ranked)] == addresses[::-1]


def test_all_errors_are_collected_and_three_wins() -> None:
    got = answer({"a": "9", "b": "x", "c": {"node_group": "z", "placement": 0}}, (8,))
    assert got.codes == {"fit", "rank", "reference"}
    assert got.exit == 3
    assert code(plan({"cluster": {"num_nodes": 2, "component_placement": {}}}, nodes(8))) == "fit"
