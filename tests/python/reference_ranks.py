"""The rank grammar: the text of node_ranks and of a placement, and nothing about clusters.

Written from spec/rlinf.md 2.1 and 2.2 with the differences of its section 10.
"""

import re
from dataclasses import dataclass
from typing import Any

MAX_RANK = 2**31 - 1
MAX_PROCESSES = 2**24


class Refused(Exception):
    """The config or one part of it is refused, for the reason this code word names."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Entry:
    """One `resources[:processes]` of a placement, as written."""

    resources: range | None  # None: all
    processes: range | None  # None: implied


@dataclass(frozen=True)
class Share:
    """An entry once its `all` and its implied processes are numbers."""

    resources: range
    processes: range


def parse_integer(text: str) -> int:
    if not re.fullmatch(r"[ \t]*\+?[0-9]+[ \t]*", text):
        raise Refused("rank")
    value = int(text)
    if value > MAX_RANK:
        raise Refused("limit")
    return value


def parse_range(text: str) -> range:
    first, dash, last = text.partition("-")
    start = parse_integer(first)
    end = parse_integer(last) if dash else start
    if start > end:
        raise Refused("rank")
    return range(start, end + 1)


def parse_ranks(value: Any, available: list[int]) -> list[int]:
    """The plain grammar of node_ranks: any order, repeats merge, the result ascends."""
    items = value if isinstance(value, list) else str(value).split(",")
    if str(value).lower() == "all":
        return sorted(available)
    chosen: set[int] = set()
    for item in items:
        if not str(item).strip(" \t"):
            continue
        ranks = parse_range(str(item))
        # Every rank is looked up, not only the two ends: available may have gaps (W15).
        if any(rank not in available for rank in ranks):
            raise Refused("fit")
        chosen.update(ranks)
    if not chosen:
        raise Refused("rank")
    return sorted(chosen)


def parse_placement(value: Any) -> list[Entry]:
    """What the text alone says. A comma always ends an entry (W8)."""
    entries = []
    for text in str(value).split(","):
        text = text.strip(" \t")
        if not text:
            continue
        resource_side, colon, process_side = text.partition(":")
        is_all = resource_side.lower() == "all"
        # A second ":" and a process side "all" both fail as text that is no range.
        resources = None if is_all else parse_range(resource_side)
        processes = parse_range(process_side) if colon else None
        entries.append(Entry(resources, processes))
    if not entries:
        raise Refused("rank")
    return entries


def number_entries(entries: list[Entry], total: int) -> list[Share]:
    """Fill in `all` and implied processes; hold every entry against the one before it.

    The order of the entries is judged before their bounds: what is wrong whatever the cluster
    is said first.
    """
    shares: list[Share] = []
    next_resource = next_process = 0
    for entry in entries:
        resources = range(total) if entry.resources is None else entry.resources
        count = len(resources)
        processes = entry.processes or range(next_process, next_process + count)
        if resources.start < next_resource or processes.start != next_process:
            raise Refused("rank")
        if processes.stop > MAX_PROCESSES:
            raise Refused("limit")
        shares.append(Share(resources, processes))
        next_resource, next_process = resources.stop, processes.stop
    if next_resource > total:
        raise Refused("fit")
    return shares


def check_text(value: Any) -> None:
    """All that can be said about a placement when there is no cluster to hold it against."""
    entries = parse_placement(value)
    if all(entry.resources is not None for entry in entries):
        number_entries(entries, MAX_RANK + 1)
