"""Random clusters: a spec string, or a snapshot whose nodes are listed in any order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

VENDORS = {
    "NVIDIA": "NV_GPU",
    "AMD": "AMD_GPU",
    "ASCEND": "NPU",
    "INTEL": "INTEL_GPU",
    "MUSA": "MUSA_GPU",
    "KUNLUN": "KUNLUN_XPU",
    "A800": "NV_GPU",
    "H100": "NV_GPU",
}
# The order of each pool is beyond doubt; a cluster may still mix the pools.
IPV4 = ["10.0.0.9", "10.0.0.10", "10.0.0.100", "9.255.0.1", "192.168.1.2", "192.168.1.11"]
IPV6 = ["fd00::9", "fd00::10", "fd00:0:0:0::a", "2001:db8::1", "fe80::2", "2001:db8:0:1::"]
NAMES = ["node2", "node10", "node100", "node3.rack1", "gpu-7", "gpu-12"]

T = TypeVar("T")


class Dice:
    """Hypothesis' draw with the few questions the generators ask; 0 and False shrink best."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def number(self, low: int, high: int) -> int:
        # One answer is no question: a draw costs, and a soak asks for hundreds of thousands.
        return self._draw(st.integers(low, high)) if low < high else low

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def sample(self, items: list[T], count: int) -> list[T]:
        """count different items in any order; only as many draws as items taken."""
        left = list(items)
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(count)]

    def shuffled(self, items: list[T]) -> list[T]:
        return self.sample(items, len(items))

    def subset(self, items: list[int]) -> list[int]:
        return sorted(self.sample(items, self.number(1, len(items))))


@dataclass(frozen=True)
class Machines:
    """Nodes as a snapshot lists them, and the spec string that means the same, if one is used."""

    nodes: list[dict[str, Any]]
    spec: str | None

    @property
    def snapshot(self) -> dict[str, Any]:
        return {"roost": 1, "cluster": {"nodes": self.nodes}}


def make_node(word: str, accelerators: int) -> dict[str, Any]:
    return {
        "accelerator_type": VENDORS[word] if accelerators else "NO_ACCEL",
        "num_accelerators": accelerators,
    }


def draw_machines(dice: Dice, most_nodes: int, counts: list[int]) -> Machines:
    """Up to most_nodes nodes, each with a number of accelerators out of counts."""
    draw = draw_snapshot if dice.chance(40) else draw_spec
    return draw(dice, most_nodes, counts)


def draw_spec(dice: Dice, most_nodes: int, counts: list[int]) -> Machines:
    nodes: list[dict[str, Any]] = []
    parts = []
    for _ in range(dice.number(1, 3)):
        if len(nodes) == most_nodes:
            break
        count = dice.number(1, min(3, most_nodes - len(nodes)))
        accelerators = dice.pick(counts)
        word = dice.pick([*VENDORS, None])
        if accelerators == 0:
            word = None
        parts.append(f"{count}x{accelerators}" + (f" {word}" if word else ""))
        nodes += [make_node(word or "NVIDIA", accelerators) for _ in range(count)]
    nodes = [{"node_rank": rank, **node} for rank, node in enumerate(nodes)]
    return Machines(nodes, ",".join(parts))


def draw_snapshot(dice: Dice, most_nodes: int, counts: list[int]) -> Machines:
    count = dice.number(1, most_nodes)
    pools = dice.pick([IPV4, IPV6, NAMES, IPV4 + IPV6 + NAMES])
    addresses = dice.sample(pools, count)
    if count > 1 and dice.chance(10):
        addresses[1] = addresses[0]  # a tie, which the id decides
    has_ranks = dice.chance(50)
    nodes = []
    for position, rank in enumerate(dice.shuffled(list(range(count)))):
        node = make_node(dice.pick(list(VENDORS)), dice.pick(counts))
        nodes.append(
            {
                **({"node_rank": rank} if has_ranks else {}),
                "id": f"id{rank}",
                "address": addresses[position],
                "num_cpus": 16,
                **node,
                "accelerator_model": "",
                "hardware": [],
            }
        )
    return Machines(nodes, None)
