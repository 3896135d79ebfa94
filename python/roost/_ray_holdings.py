"""Which accelerators the processes of a run on Ray hold: the memory of its NodeManager, without Ray.

Every launch holds its devices under a token of its own, so a device is free when the last of them lets go. Ray's books have
a device once: the first token that holds it reserves it too. What was reserved under a token that is let go, and is held
under others, goes to a token of the run itself, which holds nothing and reserves for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GONE_MAX = 1000  # tokens let go that are remembered

Devices = dict[str, set[int]]  # numbers on a node, by Ray's id of it
Plain = dict[str, list[int]]  # the same, as it is sent and kept
Kinds = dict[str, list[str]]  # of nodes where Ray counts accelerators: its name for them, and the address
Change = list[Any]


@dataclass
class Hold:
    devices: Devices
    who: str
    kinds: Kinds
    new: Devices  # that nobody held before
    reserves: Devices
    is_settled: bool  # no other run has what is new, and what it reserves is reserved


def plain(devices: Devices) -> Plain:
    return {node: sorted(numbers) for node, numbers in sorted(devices.items()) if numbers}


def sets(devices: Mapping[str, Iterable[int]]) -> Devices:
    return {node: set(numbers) for node, numbers in devices.items()}


def union(several: Iterable[Devices]) -> Devices:
    found: Devices = {}
    for devices in several:
        for node, numbers in devices.items():
            found.setdefault(node, set()).update(numbers)
    return found


def minus(devices: Devices, others: Devices) -> Devices:
    left = {node: numbers - others.get(node, set()) for node, numbers in devices.items()}
    return {node: numbers for node, numbers in left.items() if numbers}


class Holdings:
    """Changed by changes only, which make it again: ["hold", token, devices, who, kinds, new, reserves, is_settled],
    ["settle", token] and ["let_go", token]."""

    def __init__(self) -> None:
        self._holds: dict[str, Hold] = {}
        self.gone: dict[str, None] = {}  # a question for one of these was overtaken by its end

    def apply(self, change: Change) -> None:
        match change:
            case ["hold", token, devices, who, kinds, new, reserves, is_settled]:
                self._holds[token] = Hold(sets(devices), who, kinds, sets(new), sets(reserves), is_settled)
            case ["settle", token] if token in self._holds:
                self._holds[token].is_settled = True
            case ["let_go", token]:
                self._holds.pop(token, None)
                self.gone[token] = None
                if len(self.gone) > GONE_MAX:
                    del self.gone[next(iter(self.gone))]

    def changes(self) -> list[Change]:
        """All of it, as changes that make it."""
        gone: list[Change] = [["let_go", token] for token in self.gone]
        return gone + [["hold", token, plain(it.devices), it.who, it.kinds, plain(it.new), plain(it.reserves), it.is_settled] for token, it in self._holds.items()]

    def get(self, token: str) -> Hold | None:
        return self._holds.get(token)

    def holders(self) -> dict[str, str]:
        """Who has each token."""
        return {token: it.who for token, it in self._holds.items() if it.who}

    def held(self) -> Devices:
        return union(it.devices for it in self._holds.values())

    def own(self) -> dict[str, Hold]:
        """What the run itself reserves, for holders that do not."""
        return {token: it for token, it in self._holds.items() if not it.devices}

    def wish(self, token: str, wanted: Devices, who: str, kinds: Kinds) -> Change | None:
        """How the token would hold these; None for now while somebody else is still reserving one of them, and for ever
        when it was let go."""
        if token in self.gone or any(it.devices.get(node, set()) & numbers for it in self._holds.values() if not it.is_settled for node, numbers in wanted.items()):
            return None
        counted = {node: numbers for node, numbers in wanted.items() if node in kinds}
        new, reserves = minus(wanted, self.held()), minus(counted, union(it.reserves for it in self._holds.values()))
        return ["hold", token, plain(wanted), who, kinds, plain(new), plain(reserves), not (new or reserves)]

    def cover(self, token: str) -> list[Change]:
        """What makes the run reserve, under this token, what is held and reserved by nobody: nothing when it does."""
        own, holders = self.own(), [it for it in self._holds.values() if it.devices]
        wanted = union({node: numbers for node, numbers in it.devices.items() if node in it.kinds} for it in holders)
        lacking = minus(wanted, union(it.reserves for it in holders))
        if plain(lacking) == plain(union(it.reserves for it in own.values())):
            return []
        kinds = {node: it.kinds[node] for it in holders for node in it.kinds if node in lacking}
        # Wanted before the old one is given back: what both have is then the next in Ray's line.
        new: list[Change] = [["hold", token, {}, "", kinds, {}, plain(lacking), True]] if lacking else []
        return [*new, *(["let_go", old] for old in own)]
