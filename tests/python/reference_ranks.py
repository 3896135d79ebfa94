"""The rank grammar: the text of node_ranks and of a placement, and nothing about clusters.

Written from RLinf's grammar and where roost differs from it on purpose, not from the C.
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
        # Every rank is looked up, not only the two ends: available may have gaps.
        if any(rank not in available for rank in ranks):
            raise Refused("fit")
        chosen.update(ranks)
    if not chosen:
        raise Refused("rank")
    return sorted(chosen)


def parse_entry(text: str) -> Entry:
    resource_side, colon, process_side = text.partition(":")
    is_all = resource_side.lower() == "all"
    # A second ":" and a process side "all" both fail as text that is no range.
    resources = None if is_all else parse_range(resource_side)
    return Entry(resources, parse_range(process_side) if colon else None)


def parse_placement(value: Any, codes: set[str]) -> list[Entry | None]:
    """What the text alone says, None for what is no entry. A comma always ends an entry."""
    entries: list[Entry | None] = []
    for text in str(value).split(","):
        if not text.strip(" \t"):
            continue
        try:
            entries.append(parse_entry(text.strip(" \t")))
        except Refused as refusal:
            codes.add(refusal.code)
            entries.append(None)
    if not entries:
        codes.add("rank")
    return entries


def number_entries(entries: list[Entry | None], total: int | None, codes: set[str]) -> list[Share | None]:
    """Fill in `all` and implied processes; hold every entry against the one before it.

    None for an entry that is wrong, or cannot be numbered. The order of entries is judged whatever
    the cluster has; behind an entry whose processes are not known, those of the next are taken as
    they stand.
    """
    shares: list[Share | None] = []
    next_resource = 0
    next_process: int | None = 0
    for entry in entries:
        faults: set[str] = set()
        resources = processes = None
        if entry is not None:
            resources, processes = entry.resources, entry.processes
            if resources is None and total is not None:
                resources = range(total)
            if resources is not None and total is not None and resources.stop > total:
                faults.add("fit")
            if (resources.start if resources else 0) < next_resource:
                faults.add("rank")
            next_resource = resources.stop if resources else 1  # all has rank 0 at least
            if processes is None and resources and next_process is not None:
                processes = range(next_process, next_process + len(resources))
        if processes is None:
            next_process = None
        elif next_process is not None and processes.start != next_process:
            faults.add("rank")
            next_process = processes.stop
        elif processes.stop > MAX_PROCESSES:
            if entry is None or entry.processes is not None or "fit" not in faults:
                faults.add("limit")  # implied ones are too many only where there are so many ranks
            next_process = None
        else:
            next_process = processes.stop
        codes |= faults
        is_known = resources is not None and processes is not None and not faults
        shares.append(Share(resources, processes) if is_known else None)
    return shares
