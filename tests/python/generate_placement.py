"""Random placement text that is valid for the resources it is written for."""

from typing import Any

from generate_cluster import Dice, Machines
from reference_cluster import Cluster, Resource, order_nodes, read_groups


class Layout:
    """What the config's labels mean on these machines, asked of the model."""

    def __init__(self, section: dict[str, Any], machines: Machines) -> None:
        sections = section.get("node_groups", [])
        num_nodes = int(section["num_nodes"])
        groups, robots, codes = read_groups(sections, num_nodes)
        assert not codes, codes
        self.labels = [str(group["label"]) for group in sections]
        nodes = order_nodes(machines.nodes)[:num_nodes]
        self.cluster = Cluster(nodes, groups, robots)

    def resources(self, labels: list[str]) -> list[Resource]:
        return self.cluster.resources(labels)


def write_number(dice: Dice, number: int) -> str:
    """Mostly plain; sometimes as the grammar also allows."""
    if dice.chance(5):
        return dice.pick([f"{number:03}", f"+{number}", f" {number} "])
    return str(number)


def write_range(dice: Dice, first: int, last: int) -> str:
    if first < last or dice.chance(20):
        return f"{write_number(dice, first)}-{write_number(dice, last)}"
    return write_number(dice, first)


def is_one_process(units: list[Resource]) -> bool:
    """Whether one process may hold these: one node, one type, no unit twice."""
    is_together = len({(unit.node.rank, unit.kind) for unit in units}) == 1
    return is_together and len({unit.local for unit in units}) == len(units)


def chunk_sizes(units: list[Resource]) -> list[int]:
    """How many units each process may get when they are dealt out in equal chunks."""
    sizes = [size for size in range(1, len(units) + 1) if len(units) % size == 0]
    return [size for size in sizes if all(is_one_process(units[i : i + size]) for i in range(0, len(units), size))]


def draw_process_count(dice: Dice, resources: list[Resource]) -> int:
    count = len(resources)
    if resources[0].kind is None:
        return count + dice.pick([0, 1, 2, 5, 40])  # nodes: any number from one each
    if dice.chance(40):
        return count * dice.number(1, 3)
    return count // dice.pick(chunk_sizes(resources))


def draw_placement(dice: Dice, resources: list[Resource]) -> str:
    if dice.chance(20):
        text = dice.pick(["all", "all", "ALL", "All"])
        if dice.chance(40):
            text += f":{write_range(dice, 0, draw_process_count(dice, resources) - 1)}"
        return text
    texts = []
    resource = process = 0
    for _ in range(dice.pick([1, 1, 2, 3])):
        first = resource + dice.pick([0, 0, 0, 1, 2])
        if first >= len(resources):
            break
        last = dice.number(first, min(len(resources), first + 8) - 1)
        text = write_range(dice, first, last)
        count = last - first + 1
        if dice.chance(45):
            count = draw_process_count(dice, resources[first : last + 1])
            text += f":{write_range(dice, process, process + count - 1)}"
        texts.append(text)
        resource, process = last + 1, process + count
    if not texts:
        return "0"
    return dice.pick([",", ",", ", ", " ,, "]).join(texts)
