"""The stable order of bundles, against an independent reference, and slime's own worked examples.

ROOST_EXAMPLES  a fifth of the number of random sets, of which there are 100,000 at most
"""

import os
import random
from typing import Any

import pytest

import roost
from reference_slime import seed_order
from reference_slime import sort_bundles as reference
from roost.slime import order_bundles, sort_bundles

SETS = min(5 * int(os.environ.get("ROOST_EXAMPLES", "2000")), 100_000)

ADDRESSES = [
    *(
        "10.0.0.1",
        "10.0.0.2",
        "10.0.0.9",
        "10.0.0.10",
        "192.168.0.1",
        "9.255.0.3",
        "255.255.255.255",
        "0.0.0.0",
        "10.0.0.010",
        "1.2.3",
        "10.0.0.256",
    ),
    *(
        "fd00::9",
        "fd00::a",
        "fd00::10",
        "FD00::A",
        "[fd00::9]",
        "::1",
        "[::1]",
        "::",
        "fe80::1%eth0",
        "fe80::1%eth10",
        "fe80::1%eth9",
        "[fe80::1%eth0]",
    ),
    *(
        "::ffff:10.0.0.1",
        "[::ffff:10.0.0.9]",
        "::ffff:a00:2",
        "fd00::g",
        "[",
        "[]",
        "[10.0.0.1]",
        "%",
        "fe80::1%",
        "1::2::3",
    ),
    *(
        "node1",
        "node9",
        "node10",
        "node010",
        "node",
        "gpu-9.rack2",
        "gpu-10.rack1",
        "Node9",
        "näöd",
        "a" * 70,
        "a..b",
        "-",
        "9node",
        "08",
        "8",
    ),
]
IDS = ["a", "b", "n9", "n10", "0f3e", "0F3E", "node1"]
GPUS: list[int | str] = [
    0,
    1,
    2,
    3,
    7,
    9,
    10,
    11,
    64,
    -1,
    "0",
    "2",
    "10",
    "+3",
    "007",
    "-7",
    "9" * 18,
    "9" * 19,
    "1" + "0" * 19,
    "9" * 30,
    "-" + "9" * 25,
    "-0",
]
GPUS += [
    "GPU-aa",
    "GPU-bb",
    "GPU-AA",
    "GPU-2f",
    "MIG-1",
    "MIG-GPU-aa/1/0",
    "MIG-GPU-aa/10/0",
    "é",
    " ",
    "3 ",
    "1_0",
    "٣",
]
VISIBLE = ["GPU-bb,GPU-aa", "MIG-1, GPU-aa ,GPU-2f", "0,1,2", "", "GPU-aa"]


def random_set(dice: random.Random) -> tuple[list[tuple[int, Any, int | str]], dict[Any, str]]:
    """Few nodes and ids, so that ties are common."""
    addresses = dice.sample(ADDRESSES, dice.randint(1, 8))
    nodes: list[Any] = [
        address if dice.random() < 0.5 else (dice.choice([*IDS, None]), address) for address in addresses
    ]
    nodes += [(dice.choice(IDS), None)] if dice.random() < 0.2 else []
    gpus = dice.sample(GPUS, dice.randint(1, 8))
    count = dice.randint(0, 16)
    indices = dice.sample(range(count + dice.choice([0, 0, 5])), count)
    visible = {node: dice.choice(VISIBLE) for node in nodes if dice.random() < 0.3}
    return [(index, dice.choice(nodes), dice.choice(gpus)) for index in indices], visible


def test_random_sets_are_ordered_as_the_reference_orders_them() -> None:
    dice = random.Random(20251116)
    for _ in range(SETS):
        bundles, visible = random_set(dice)
        answer = sort_bundles(bundles, visible=visible)
        assert answer == reference(bundles, visible), (bundles, visible)
        shuffled = dice.sample(bundles, len(bundles))
        assert sort_bundles(shuffled, visible=visible) == answer, (bundles, shuffled)


def test_distinct_ipv4_addresses_and_integer_ids_come_as_in_the_seed() -> None:
    dice = random.Random(3)
    for _ in range(SETS // 5):
        nodes = dice.sample(
            [f"{a}.{b}.{c}.{d}" for a in (9, 10, 192) for b in (0, 168) for c in (0, 2) for d in (1, 9, 10, 99, 100)],
            dice.randint(1, 8),
        )
        bundles = [(index, dice.choice(nodes), dice.randint(0, 15)) for index in range(dice.randint(0, 40))]
        assert sort_bundles(bundles) == seed_order(bundles)


def by_place(*bundles: tuple[Any, int | str], **how: Any) -> list[tuple[Any, int | str]]:
    """What was given, in order."""
    return [bundles[index] for index in sort_bundles([(index, *bundle) for index, bundle in enumerate(bundles)], **how)]


def test_worked_examples() -> None:
    assert by_place(("10.0.0.10", 0), ("10.0.0.9", 1), ("10.0.0.9", 0)) == [
        ("10.0.0.9", 0),
        ("10.0.0.9", 1),
        ("10.0.0.10", 0),
    ]
    assert by_place(("n", "10"), ("n", "2")) == [("n", "2"), ("n", "10")]
    assert by_place(("gpu-10", 0), ("gpu-9", 0)) == [("gpu-9", 0), ("gpu-10", 0)]


def test_nodes_that_share_an_address_stay_apart() -> None:
    one, two = ("node-1", "10.0.0.1"), ("node-2", "10.0.0.1")
    assert by_place((one, 0), (two, 0), (one, 1), (two, 1)) == [(one, 0), (one, 1), (two, 0), (two, 1)]
    order = order_bundles([(0, one, 0), (1, two, 0), (2, one, 1), (3, two, 1)])
    assert (order.nodes, order.slots_of_node) == ([0, 0, 1, 1], [2, 2])


def test_a_node_told_by_several_addresses_stays_together() -> None:
    assert by_place((("a", "10.0.0.9"), 1), (("b", "10.0.0.5"), 0), (("a", "10.0.0.1"), 0)) == [
        (("a", "10.0.0.1"), 0),
        (("a", "10.0.0.9"), 1),
        (("b", "10.0.0.5"), 0),
    ]


def test_ipv6_comes_by_value_and_kinds_never_mix() -> None:
    assert by_place(("fd00::10", 0), ("fd00::9", 0), ("fd00::a", 0)) == [
        ("fd00::9", 0),
        ("fd00::a", 0),
        ("fd00::10", 0),
    ]
    assert by_place(("192.168.0.1", 0), ("nodeB", 0), ("fe80::1", 0), ("10.0.0.1", 0)) == [
        ("10.0.0.1", 0),
        ("192.168.0.1", 0),
        ("fe80::1", 0),
        ("nodeB", 0),
    ]
    assert by_place(("[fd00::9]", 1), ("fd00::9", 0)) == [("fd00::9", 0), ("[fd00::9]", 1)]
    assert by_place(("10.0.0.2", 0), ("::ffff:10.0.0.1", 0)) == [("::ffff:10.0.0.1", 0), ("10.0.0.2", 0)]


def test_no_name_is_looked_up_unless_asked() -> None:
    bad = [("a" * 64 + ".example", 0), ("a..b", 0), ("nodeB", 0)]
    assert by_place(*bad) == sorted(bad, key=lambda it: it[0])
    order = order_bundles([(i, name, gpu) for i, (name, gpu) in enumerate(bad)])
    assert order.resolved == {}


def test_each_name_is_asked_for_once_and_the_answer_is_kept() -> None:
    asked = []
    rounds = iter(["10.0.0.2", "10.0.0.3"])

    def resolve(name: str) -> str | None:
        asked.append(name)
        answers = {"nodeA": "10.0.0.9", "nodeB": "10.0.0.9", "lost": None, "odd": "nowhere"}
        return next(rounds) if name == "robin" else answers[name]

    bundles = [
        (i, name, gpu)
        for i, (gpu, name) in enumerate(
            (gpu, name) for gpu in range(2) for name in ("nodeB", "nodeA", "robin", "lost", "odd")
        )
    ]
    order = order_bundles(bundles, resolve=resolve)
    assert sorted(asked) == ["lost", "nodeA", "nodeB", "odd", "robin"]
    assert order.resolved == {"lost": None, "nodeA": "10.0.0.9", "nodeB": "10.0.0.9", "odd": None, "robin": "10.0.0.2"}
    names = [bundles[index][1] for index in order.indices]
    assert names == ["robin", "robin", "nodeA", "nodeA", "nodeB", "nodeB", "lost", "lost", "odd", "odd"]


def test_a_resolver_that_raises_is_heard() -> None:
    def resolve(name: str) -> str | None:
        raise LookupError(name)

    with pytest.raises(LookupError, match="node"):
        sort_bundles([(0, "node", 0), (1, "other", 0)], resolve=resolve)
    with pytest.raises(TypeError, match="resolve must answer"):
        sort_bundles([(0, "node", 0)], resolve=lambda name: 3)  # type: ignore[arg-type, return-value]


def test_the_systems_resolver_is_there_for_who_asks() -> None:
    order = order_bundles([(0, "localhost", 1), (1, "localhost", 0), (2, "no-such-name.invalid", 0)], resolve=True)
    assert order.indices == [1, 0, 2]
    assert order.resolved["localhost"] in ("127.0.0.1", "::1") and order.resolved["no-such-name.invalid"] is None


def test_device_ids_are_opaque() -> None:
    assert by_place(("n", "GPU-bb"), ("n", "GPU-aa")) == [("n", "GPU-aa"), ("n", "GPU-bb")]
    assert by_place(("n", "GPU-bb"), ("n", "GPU-aa"), visible={"n": ["GPU-bb", "GPU-aa"]}) == [
        ("n", "GPU-bb"),
        ("n", "GPU-aa"),
    ]
    mixed = by_place(("n", "MIG-1"), ("n", "GPU-aa"), ("n", 10), ("n", "9"), visible={"n": "GPU-aa"})
    assert [gpu for _, gpu in mixed] == ["9", 10, "GPU-aa", "MIG-1"]


@pytest.mark.parametrize(
    ("bundle", "words"),
    [
        ((3, None, 0), ["bundle 3", "neither the node's id nor its address"]),
        ((3, "", "0"), ["bundle 3", "GPU id '0'"]),
        ((3, (None, None), "7"), ["bundle 3", "GPU id '7'"]),
        ((3, "10.0.0.1", ""), ["bundle 3", "node '10.0.0.1'", "no GPU id"]),
        ((3, "10.0.0.1", None), ["bundle 3", "node '10.0.0.1'", "GPU id None"]),
        ((3, "10.0.0.1", 1.5), ["bundle 3", "GPU id 1.5"]),
        ((3, "10.0.0.1", True), ["bundle 3", "GPU id True"]),
        ((3, "10.0.0.1", "a\0b"), ["bundle 3", "node '10.0.0.1'"]),
        ((3, "\ud800", 0), ["bundle 3", "a node is an address"]),
        ((3, 7, 0), ["bundle 3", "node 7"]),
        ((3, ("a", "b", "c"), 0), ["bundle 3", "('a', 'b', 'c')"]),
        ((-1, "n", 0), ["bundle -1", "cannot be negative"]),
    ],
)
def test_a_malformed_answer_names_bundle_node_and_value(bundle: Any, words: list[str]) -> None:
    with pytest.raises(roost.Error) as caught:
        sort_bundles([(0, "n", 0), bundle])
    assert [word for word in words if word not in str(caught.value)] == [], str(caught.value)
    assert caught.value.code == "schema"


def test_an_index_comes_once() -> None:
    with pytest.raises(roost.Error, match="bundle 1 on node 'b' with GPU id '5': another bundle has this index"):
        sort_bundles([(1, "a", 0), (0, "a", 1), (1, "b", 5)])
    with pytest.raises(TypeError, match=r"the index of bundles\[0\] must be an int"):
        sort_bundles([("0", "a", 0)])  # type: ignore[list-item]


def test_no_bundles_have_an_order_too() -> None:
    assert sort_bundles([]) == []
    assert order_bundles([]).slots_of_node == []


@pytest.mark.parametrize(
    ("bundles", "how", "words"),
    [
        (5, {}, r"^bundles must be a sequence of \(index, node, gpu_id\), not 5"),
        ("abc", {}, "^bundles must be a sequence"),
        ([(0, "a", 1), 5], {}, r"^bundles\[1\] must be \(index, node, gpu_id\), not 5"),
        (["abc"], {}, r"^bundles\[0\] must be"),
        ([(0, "a")], {}, r"^bundles\[0\] must be"),
        ([("0", "a", 1)], {}, r"^the index of bundles\[0\] must be an int, not '0'"),
        ([], {"resolve": 1}, "^resolve must be a bool or a function"),
        ([], {"resolve": "yes"}, "^resolve must be a bool or a function"),
        ([], {"visible": 5}, "^visible must be a mapping"),
        ([], {"visible": {"a": 5}}, r"^visible\['a'\] must be a str or a sequence of str, not 5"),
        ([], {"visible": {"a": [0]}}, r"^visible\['a'\] must be"),
        ([], {"visible": {"a": b"GPU-a"}}, r"^visible\['a'\] must be"),
    ],
)
def test_arguments_of_wrong_types_are_named(bundles: Any, how: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        sort_bundles(bundles, **how)


def test_a_node_that_cannot_be_looked_up_is_refused_with_its_bundle() -> None:
    for node in (["a"], ("a", ["b"])):
        with pytest.raises(roost.Error, match="^bundle 7 on node .*: a node is an address"):
            sort_bundles([(7, node, 0)], visible={"a": "GPU-a"})


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    assert sort_bundles([(0, "a", numpy.int64(10)), (numpy.int32(1), "a", numpy.uint8(9)), [2, "a", "8"]]) == [2, 1, 0]
    assert sort_bundles(iter([(0, "a", 1)]), resolve=numpy.False_) == [0]
