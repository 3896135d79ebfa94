"""Runs of the embedded engine, for its tests: a private home, real processes, no sleeping.

ROOST  the program (default build/roost); its tests/engine_worker is what the processes run
"""

import errno
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from verdicts import LeftOver

ROOST = Path(os.environ.get("ROOST", Path(__file__).parents[2] / "build" / "roost")).absolute()
WORKER = ROOST.parent / "tests" / "engine_worker"
PATIENCE = 30.0  # seconds until a test that hears nothing gives up; never a wait


class Pipe:
    """A named pipe that workers open by its path."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path, 0o600)
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.text = b""

    def lines(self, count: int, patience: float = PATIENCE) -> list[list[str]]:
        """The first `count` lines, each split into words; waits for them. Fewer after `patience`."""
        deadline = time.monotonic() + patience
        # An end of the pipe means that no writer has it open now; another one may open it.
        keep = os.open(self.path, os.O_WRONLY)
        try:
            while self.text.count(b"\n") < count and time.monotonic() < deadline:
                if select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    self.text += os.read(self.fd, 65536)
        finally:
            os.close(keep)
        return [line.split() for line in self.text.decode().split("\n")[:-1]][:count]

    def wait_end(self, patience: float = PATIENCE) -> bool:
        """True once nobody holds the pipe open for writing any more."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            try:
                if os.read(self.fd, 65536) == b"":  # also when nobody ever did
                    return True
            except BlockingIOError:
                select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
        raise AssertionError(LeftOver([f"somebody who writes to {self.path}"]))

    def write(self, text: bytes = b"x") -> None:
        """Lets go whoever reads from it, now or later: a byte for each."""
        with open(self.path, "wb", buffering=0) as pipe:
            pipe.write(text)

    def close(self) -> None:
        os.close(self.fd)


def wait_gone(pids: list[int], patience: float = PATIENCE) -> None:
    """Until each of the processes is gone (or was never there)."""
    deadline = time.monotonic() + patience
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            assert select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0], LeftOver([pid])
        finally:
            os.close(fd)


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_state(pid: int, states: str) -> None:
    """Until the process is in one of the states; the kernel gives no event for a stop to strangers."""
    for _ in range(10_000_000):
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in states:
            return
        os.sched_yield()
    raise AssertionError(f"process {pid} does not come to {states}")


class PortShare:
    """Ports that no other process of the tests on this machine uses, for as long as this one lives."""

    SIZE = 400

    def __init__(self) -> None:
        # A name of an abstract socket is taken in the same network namespace that ports are taken in.
        self.mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        for share in range(24):
            self.first = 23000 + share * self.SIZE  # above what starts at 20000, below the kernel's own
            try:
                self.mark.bind(f"\0roost-tests-ports-{self.first}")
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
        raise RuntimeError("every share of the ports for tests is taken")


@functools.cache
def own_ports() -> PortShare:
    """Taken by who runs an engine, not by who imports this: workers of the tests do."""
    return PortShare()


class OtherUser:
    """Somebody who is not root, for tests that are: with a control group of its own to make others in, or without any right."""

    ID = 65534

    def __init__(self, *, has_cgroup: bool) -> None:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
        mount = Path(next(words[1] for words in mounts if words[2] == "cgroup2"))
        self.group = mount / f"test-user-{os.getpid()}" if has_cgroup else None
        if self.group is not None:
            self.group.mkdir()
            for path in (self.group, self.group / "cgroup.procs", self.group / "cgroup.subtree_control"):
                self.own(path)

    def own(self, path: Path) -> None:
        os.chown(path, self.ID, self.ID)

    def take(self, home: Path) -> tuple[Path, Path]:
        """The programs, where this user can get at them: who runs the tests may keep the build to itself."""
        self.own(home)
        (home / "bin").mkdir()
        return tuple(Path(shutil.copy(program, home / "bin")) for program in (ROOST, WORKER))  # type: ignore[return-value]

    def become(self) -> None:
        """In a child, before it executes something."""
        if self.group is not None:
            (self.group / "cgroup.procs").write_text("0")
        os.setgroups([])
        os.setresgid(self.ID, self.ID, self.ID)
        os.setresuid(self.ID, self.ID, self.ID)

    def close(self) -> None:
        if self.group is not None:
            self.group.rmdir()


class Engine:
    """A place to run things in, and the runs in it."""

    def __init__(self, home: Path, *, has_cgroup: bool = True, user: "OtherUser | None" = None) -> None:
        self.home = home
        self.user = user
        self.roost, self.worker = (ROOST, WORKER) if user is None else user.take(home)
        self.state = home / "state" / "roost" / "runs"
        self.runtime = home / "runtime"
        self.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.has_cgroup = has_cgroup
        self.marker = f"ROOST_TEST_HOME={home}"
        self.env = {
            name: value for name, value in os.environ.items() if not name.startswith(("ROOST", "XDG_", "LISTEN_"))
        }
        self.env |= {
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "ROOST_TEST_HOME": str(home),
        }
        # Tests that run at the same time have homes, and so books of leases, of their own.
        self.env["ROOST_PORT_BASE"] = str(own_ports().first)
        if not has_cgroup:
            self.env["ROOST_CGROUP"] = "never"
        self.running: list[subprocess.Popen] = []
        self.pipes: list[Pipe] = []
        if user is not None:
            user.own(self.runtime)

    # --- what to run

    def pipe(self, name: str) -> Pipe:
        self.pipes.append(Pipe(self.home / name))
        if self.user is not None:
            self.user.own(self.pipes[-1].path)
        return self.pipes[-1]

    def drop(self, pipe: Pipe) -> None:
        """One that is not needed any more; the next may have its name."""
        self.pipes.remove(pipe)
        pipe.close()
        pipe.path.unlink()

    def config(self, components: dict[str, dict], name: str = "train.yaml", **roost: object) -> Path:
        """`components`: name -> launch settings, with `ranks` for the placement (default one process). A
        `do` is a list of steps for the worker of the tests."""
        placement, launch = {}, {}
        for component, settings in components.items():
            settings = dict(settings)
            placement[component] = settings.pop("ranks", 0)
            if "do" in settings:
                settings["command"] = [str(self.worker), *settings.pop("do")]
            launch[component] = settings
        path = self.home / name
        document = {
            "cluster": {"num_nodes": 1, "component_placement": placement},
            "roost": {"cluster": "1x1024", "launch": launch, **roost},
        }
        path.write_text(json.dumps(document, indent=1))
        return path

    def command(self, config: Path, *words: str) -> list[str]:
        return [str(self.roost), "run", str(config), *words]

    def ask(self, *words: str) -> subprocess.CompletedProcess:
        """Another command of the same user."""
        user = {} if self.user is None else {"preexec_fn": self.user.become}
        return subprocess.run(
            [str(self.roost), *words], env=self.env, capture_output=True, text=True, timeout=PATIENCE, **user
        )

    def start(self, config: Path, *words: str, **options: object) -> subprocess.Popen:
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "env": self.env,
            "cwd": self.home,
        } | options
        if self.user is not None:
            options["preexec_fn"] = self.user.become
        self.running.append(subprocess.Popen(self.command(config, *words), **options))
        return self.running[-1]

    def run(self, config: Path, *words: str, **options: object) -> subprocess.CompletedProcess:
        """To the end; nothing of it may be left when the driver has ended."""
        driver = self.start(config, *words, **options)
        return self.finish(driver)

    def finish(self, driver: subprocess.Popen, patience: float = PATIENCE) -> subprocess.CompletedProcess:
        out, err = driver.communicate(timeout=patience)
        self.running.remove(driver)
        assert self.left() == []
        return subprocess.CompletedProcess(
            driver.args, driver.returncode, (out or b"").decode(errors="replace"), (err or b"").decode(errors="replace")
        )

    def finish_one(self, driver: subprocess.Popen, patience: float = PATIENCE) -> int:
        """The code of one of several drivers; others may go on."""
        driver.communicate(timeout=patience)
        self.running.remove(driver)
        return driver.returncode

    def kill_tree(self, driver: subprocess.Popen) -> None:
        """The driver and all below it, at one instant. They are stopped before, parents first: one that is stopped starts nobody,
        and does not see the others go."""
        pids = [driver.pid]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            wait_state(pid, "TZX")
            pids += children_of(pid)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        driver.communicate(timeout=PATIENCE)
        self.running.remove(driver)

    # --- what there is

    def runs(self) -> list[Path]:
        return sorted(self.state.iterdir(), key=lambda path: path.lstat().st_ctime_ns) if self.state.exists() else []

    def page(self, run: Path) -> dict:
        return json.loads((run / "run.json").read_text())

    def records(self, run: Path, *, may_be_cut: bool = False) -> list[dict]:
        """`may_be_cut`: whoever wrote them was killed, perhaps in the middle of a line."""
        text = (run / "records.jsonl").read_text()
        lines = text[: text.rfind("\n") + 1 if may_be_cut else None].splitlines()
        return [record for record in map(json.loads, lines) if "component" in record]

    def log(self, run: Path, component: str, rank: int = 0, stream: str = "stdout") -> str:
        return (run / component / str(rank) / f"{stream}.log").read_text()

    def left(self) -> LeftOver:
        """Living processes of any run of this home: by the run's token, or the home's own mark."""
        tokens = {f"ROOST_RUN_ID={run.name}".encode() for run in self.runs()} | {self.marker.encode()}
        found = LeftOver()
        for entry in os.listdir("/proc"):
            if not entry.isdigit() or int(entry) == os.getpid():
                continue
            try:
                words = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if tokens.intersection(words) and is_alive(int(entry)):
                found.append(int(entry))
        return found

    def wait_empty(self, patience: float = PATIENCE) -> None:
        """Until nothing of any run is left. Looks twice: what is found nowhere may be between two
        programs."""
        deadline, empty = time.monotonic() + patience, 0
        while empty < 2:
            left = self.left()
            empty = 0 if left else empty + 1
            assert time.monotonic() < deadline, LeftOver(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left)
            wait_gone(left, deadline - time.monotonic())

    def cgroups(self) -> LeftOver:
        """Control groups of runs of this home that are still there."""
        names = {f"roost-{run.name}" for run in self.runs()}
        mounts = [
            line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[2] == "cgroup2"
        ]
        # os.walk passes over what goes away meanwhile, as the groups of other tests do.
        return LeftOver(
            Path(folder) for mount in mounts for folder, _, _ in os.walk(mount) if Path(folder).name in names
        )

    def remove_cgroups(self) -> None:
        """Empty ones. Who has ended may still be on its way out of one; the kernel tells when it has left."""
        for group in self.cgroups():
            events = os.open(group / "cgroup.events", os.O_RDONLY)
            try:
                changes = select.poll()
                changes.register(events, select.POLLPRI)
                while b"populated 1" in os.pread(events, 4096, 0):
                    assert changes.poll(PATIENCE * 1000), LeftOver([group, (group / "cgroup.procs").read_text()])
            finally:
                os.close(events)
            group.rmdir()

    def close(self) -> None:
        for driver in self.running:
            driver.send_signal(signal.SIGKILL)
            out, err = driver.communicate(timeout=PATIENCE)
            print(f"{driver.args}:\n{out}\n{err}")  # pytest shows it when the test has failed
        self.wait_empty()
        for pipe in self.pipes:
            pipe.close()
