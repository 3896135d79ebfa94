"""The devices that the processes of a run on Ray hold: the table of its NodeManager. Pure: nothing here asks Ray.

Each launch holds its devices under a reservation with an id of its own, so a device is free when its last reservation ends.
Ray counts a device once: the first reservation that holds the device also reserves it in Ray. When that one ends while
others still hold the device, a reservation of the run itself takes over: it holds nothing, and reserves for all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ENDED_MAX = 1000  # ids of ended reservations that are remembered

Devices = dict[str, set[int]]  # numbers on a node, by Ray's id of it
Plain = dict[str, list[int]]  # the same, as it is sent and kept
Kinds = dict[str, list[str]]  # of nodes where Ray counts accelerators: its name for them, and the address
Change = list[Any]


@dataclass
class Reservation:
    """What one launch holds."""

    devices: Devices
    who: str
    kinds: Kinds
    new: Devices  # devices that no other reservation held before
    reserves: Devices  # devices that Ray counts for this reservation
    is_settled: bool  # no other run has the new devices, and Ray has reserved what it counts here


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


class Reservations:
    """All reservations of a run. Only changes modify it, so that the journal can build it again: ["hold", id, devices, who,
    kinds, new, reserves, is_settled], ["settle", id] and ["let_go", id]."""

    def __init__(self) -> None:
        self._by_id: dict[str, Reservation] = {}
        self.ended: dict[str, None] = {}  # ids; a request for one of these was overtaken by its end

    def apply(self, change: Change) -> None:
        match change:
            case ["hold", reservation_id, devices, who, kinds, new, reserves, is_settled]:
                self._by_id[reservation_id] = Reservation(
                    sets(devices), who, kinds, sets(new), sets(reserves), is_settled
                )
            case ["settle", reservation_id] if reservation_id in self._by_id:
                self._by_id[reservation_id].is_settled = True
            case ["let_go", reservation_id]:
                self._by_id.pop(reservation_id, None)
                self.ended[reservation_id] = None
                if len(self.ended) > ENDED_MAX:
                    del self.ended[next(iter(self.ended))]

    def changes(self) -> list[Change]:
        """The whole table, as changes that build it."""
        ended: list[Change] = [["let_go", reservation_id] for reservation_id in self.ended]
        return ended + [
            [
                "hold",
                reservation_id,
                plain(it.devices),
                it.who,
                it.kinds,
                plain(it.new),
                plain(it.reserves),
                it.is_settled,
            ]
            for reservation_id, it in self._by_id.items()
        ]

    def get(self, reservation_id: str) -> Reservation | None:
        return self._by_id.get(reservation_id)

    def holders(self) -> dict[str, str]:
        """The process that holds each reservation, by the reservation's id."""
        return {reservation_id: it.who for reservation_id, it in self._by_id.items() if it.who}

    def held(self) -> Devices:
        return union(it.devices for it in self._by_id.values())

    def own(self) -> dict[str, Reservation]:
        """The reservations of the run itself, by their ids."""
        return {reservation_id: it for reservation_id, it in self._by_id.items() if not it.devices}

    def wish(self, reservation_id: str, wanted: Devices, who: str, kinds: Kinds) -> Change | None:
        """The change that makes a reservation of these devices. None while another reservation of one of them is not
        settled, and for an id that has ended."""
        is_busy = any(
            it.devices.get(node, set()) & numbers
            for it in self._by_id.values()
            if not it.is_settled
            for node, numbers in wanted.items()
        )
        if reservation_id in self.ended or is_busy:
            return None
        counted = {node: numbers for node, numbers in wanted.items() if node in kinds}
        new, reserves = minus(wanted, self.held()), minus(counted, union(it.reserves for it in self._by_id.values()))
        return ["hold", reservation_id, plain(wanted), who, kinds, plain(new), plain(reserves), not (new or reserves)]

    def cover(self, reservation_id: str) -> list[Change]:
        """The changes that make the run reserve, under this id, the devices that are held and that no reservation has in
        Ray. None are needed when the run does so already."""
        own, holders = self.own(), [it for it in self._by_id.values() if it.devices]
        wanted = union({node: numbers for node, numbers in it.devices.items() if node in it.kinds} for it in holders)
        lacking = minus(wanted, union(it.reserves for it in holders))
        if plain(lacking) == plain(union(it.reserves for it in own.values())):
            return []
        kinds = {node: it.kinds[node] for it in holders for node in it.kinds if node in lacking}
        # The new reservation comes before the end of the old one: what both have is then next in Ray's line.
        new: list[Change] = [["hold", reservation_id, {}, "", kinds, {}, plain(lacking), True]] if lacking else []
        return [*new, *(["let_go", old] for old in own)]
