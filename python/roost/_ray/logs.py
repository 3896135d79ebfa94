"""The output of workers on Ray: on the driver's screen, and in a folder where the program asked for one.

Ray brings the lines of all nodes to the driver, each batch with its address and process. The rank of a process is known when
the rank is ready. Until then its lines are kept, so that a file has the first line, too. Files are where the local engine has
them: <folder>/<run>/<group>/<rank>/stdout.log and stderr.log."""

import contextlib
import itertools
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, fault
from roost._work.logs import has_color

log = logging.getLogger("roost")

HANDLER = "ray_print_logs"  # Ray's own handler, which ours stands before
EARLY_MAX = 10_000  # batches that are kept for ranks not known yet
DRAIN_SECONDS = 5.0
UNMADE = ("Hosted", "AsyncHosted")  # what Ray calls an actor until its worker is made: the class

Batch = dict[str, Any]


def process_of(batch: Batch) -> tuple[str, str]:
    """The address that the reader of its log gives, and its number."""
    return str(batch.get("ip")), str(batch.get("pid"))


def name_of(batch: Batch) -> str:
    return batch.get("actor_name") or ""


def make_private(folder: Path) -> None:
    """Makes a private folder, and those above it that are missing: mkdir(parents=True) would leave these to the umask."""
    missing = list(itertools.takewhile(lambda path: not path.is_dir(), [folder, *folder.parents]))
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)  # another process of the run may be as far


def show_every_line() -> None:
    """Switches off Ray's removal of repeated lines, also where the program imported Ray before: Ray reads the variable then."""
    reader = sys.modules.get("ray._private.ray_logging")
    if os.environ["RAY_DEDUP_LOGS"] == "0" and hasattr(reader, "RAY_DEDUP_LOGS"):
        setattr(reader, "RAY_DEDUP_LOGS", False)  # noqa: B010


def filtered(batch: Batch) -> Batch:
    """A batch as it is shown: colours pass on a terminal, a progress bar is its newest state, other controls are escaped."""
    data = "".join(f"{line}\n" for line in batch["lines"]).encode(errors="surrogateescape")
    is_colored = has_color(sys.stderr if batch.get("is_err") else sys.stdout)
    text, _, _, _ = _roost.show_lines(None, 0, data, 0, True, is_colored, 0, "")
    return batch | {"lines": text.split("\n")[:-1]}


class Source:
    """One rank: a process on a node."""

    def __init__(self, group: str, rank: int, address: str, pid: int, is_shown: bool) -> None:
        self.group, self.rank, self.is_shown = group, rank, is_shown
        self.address, self.pid = address, str(pid)
        self.name = f"{group}:{rank}"


class RayLogs:
    """What is done with each line."""

    def __init__(self, folder: str | None, run_id: str) -> None:
        self._folder: Path | None = None
        if folder is not None:
            self.keep_in(folder, run_id)
        self._show: list[Callable[[Batch], None]] = []
        self._sources: dict[str, list[Source]] = {}  # by process
        self._early: dict[tuple[str, str], list[Batch]] = {}  # by process
        self._early_count = 0
        self._is_full = False  # and a warning has said so
        self._launching = 0
        self._groups: set[str] = set()  # that this process has launched, or tried to
        self._hiding: set[str] = set()  # groups that are being launched and whose output is not shown
        self._hidden: set[tuple[str, str]] = set()  # numbers and names of processes that no source stands for
        self._marks: dict[str, set[tuple[Source, bool]]] = {}
        self._changed = threading.Condition()

    def keep_in(self, folder: str, run_id: str) -> None:
        wanted = Path(folder) / run_id
        if self._folder not in (None, wanted):
            raise fault(
                EngineError,
                f"the output of this run is kept in '{self._folder and self._folder.parent}' already, and not in '{folder}'",
                hint="use one distributed_log_dir in a process",
            )
        self._folder = wanted

    @property
    def is_kept(self) -> bool:
        return self._folder is not None

    def begin(self) -> None:
        """Between Ray and its screen. Where Ray has no such place, its screen stays as it is."""
        try:
            from ray._private.ray_logging import global_worker_stdstream_dispatcher as dispatcher
        except ImportError as error:
            log.warning("output of workers is not collected with this version of Ray: %s", error)
            return
        self._show = [show for name, show in dispatcher.handlers if name == HANDLER]
        dispatcher.remove_handler(HANDLER)
        dispatcher.add_handler(HANDLER, self.hear)

    @contextlib.contextmanager
    def launching(self, group: str, is_hidden: bool = False) -> Iterator[None]:
        """Meanwhile lines of processes that are not known yet are kept back."""
        with self._changed:
            self._launching += 1
            self._groups.add(group)
            if is_hidden:
                self._hiding.add(group)
        try:
            yield
        finally:
            with self._changed:
                self._launching -= 1
                if not self._launching:
                    for process in list(self._early):
                        for batch in self._pop_early(process):
                            self._take(batch, self._find(batch))
                    self._hiding.clear()

    def add_source(self, source: Source) -> None:
        """Registers a rank that is ready, and takes the lines that came before."""
        with self._changed:
            self._sources.setdefault(source.pid, []).append(source)
            for process, early in list(self._early.items()):
                if any(self._find(batch) is source for batch in early):
                    self._take_early(process, source)

    def _find(self, batch: Batch) -> Source | None:
        """The rank that wrote a batch: by address and process, else by name. Nodes on one machine share a reader of logs, which
        gives its own address. The name of the class fits any rank, so it counts only when no rank is still to come."""
        address, pid = process_of(batch)
        name, sources = name_of(batch), self._sources.get(pid, [])
        found = [source for source in sources if source.address == address] or [
            source for source in sources if source.name == name
        ]
        if not found and name in UNMADE and not self._launching:
            found = sources
        return found[-1] if found else None  # the newest: numbers are used again

    def _pop_early(self, process: tuple[str, str]) -> list[Batch]:
        early = self._early.pop(process, [])
        self._early_count -= len(early)
        return early

    def _take_early(self, process: tuple[str, str], source: Source | None) -> None:
        for batch in self._pop_early(process):
            self._take(batch, source)

    def hear(self, batch: Batch) -> None:
        """Called by Ray's thread."""
        with self._changed:
            source = self._find(batch)
            if source is None and self._launching:
                self._keep_back(batch)
            else:
                self._take_early(process_of(batch), source)
                self._take(batch, source)

    def _keep_back(self, batch: Batch) -> None:
        if self._early_count < EARLY_MAX:
            self._early.setdefault(process_of(batch), []).append(batch)
            self._early_count += 1
            return
        if not self._is_full:
            self._is_full = True
            log.warning(
                "workers write too much before they are ready: after %d batches of lines, what comes until then is not kept",
                EARLY_MAX,
            )
        self._take(batch, None)

    def _take(self, batch: Batch, source: Source | None) -> None:
        if source is not None:
            batch = self._without_marks(source, batch)
        rank = (source.group, source.rank) if source is not None else self._rank_by_name(batch)
        if rank is not None and self._folder is not None and batch["lines"]:
            try:
                self._write(*rank, batch)
            except OSError as error:
                log.warning("output of %s:%d is not kept in %s: %s", *rank, self._folder, error)
                self._folder = None
        if batch["lines"] and (not self._is_hidden(batch) if source is None else source.is_shown):
            shown = filtered(batch)
            for show in self._show:
                show(shown)

    def _rank_by_name(self, batch: Batch) -> tuple[str, int] | None:
        """The rank of a process that was never ready, or whose last lines come after its end: they may say why a launch failed."""
        group, _, rank = name_of(batch).rpartition(":")
        return (group, int(rank)) if group in self._groups and rank.isdecimal() else None

    def _is_hidden(self, batch: Batch) -> bool:
        """Whether lines without a source belong to a group that is not shown: one that was closed, or a rank that was never ready.
        The process id alone does not decide: another process may have it by now."""
        name, (_, pid) = name_of(batch), process_of(batch)
        if self._hiding and (name in UNMADE or name.rpartition(":")[0] in self._hiding):
            self._hidden.add((pid, name))
        return (pid, name) in self._hidden

    def _write(self, group: str, rank: int, batch: Batch) -> None:
        assert self._folder
        folder = self._folder / group / str(rank)
        make_private(folder)
        path = folder / ("stderr.log" if batch.get("is_err") else "stdout.log")
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{line}\n" for line in batch["lines"])

    # --- the end of a group: its last lines are on their way

    def _without_marks(self, source: Source, batch: Batch) -> Batch:
        lines = []
        for line in batch["lines"]:
            mark = next((mark for mark in self._marks if line.endswith(mark)), "")
            if mark:
                self._marks[mark].add((source, bool(batch.get("is_err"))))
                self._changed.notify_all()
            if not mark or line != mark:  # it may end a line that was not whole
                lines.append(line.removesuffix(mark))
        return batch | {"lines": lines}

    def drain(self, mark: str, tell: Callable[[str], list[Source]]) -> None:
        """Waits until everything that the ranks have written has come, or time is up. `tell` makes the ranks write the mark to
        both streams and returns which ranks did."""
        with self._changed:
            seen: set[tuple[Source, bool]] = set()
            self._marks[mark] = seen
        try:
            wanted = {(source, is_error) for source in tell(mark) for is_error in (False, True)}
            with self._changed:
                self._changed.wait_for(lambda: wanted <= seen, DRAIN_SECONDS)
        finally:
            with self._changed:
                del self._marks[mark]

    def forget(self, sources: list[Source]) -> None:
        """Forgets ranks that have ended. Their late lines have no source; those of a hidden group stay hidden."""
        with self._changed:
            for source in sources:
                self._sources[source.pid].remove(source)
                if not source.is_shown:
                    self._hidden.update((source.pid, name) for name in (*UNMADE, source.name))
