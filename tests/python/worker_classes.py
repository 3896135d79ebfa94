"""Workers that the tests launch. They are imported by the processes of the groups, too."""

import asyncio
import contextlib
import contextvars
import functools
import gc
import os
import resource
import signal
import socket
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np

from roost import Worker


class Stubborn(Exception):
    """Pickles, and cannot be made again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("in\ntwo lines")


def make_homebody(home: int, size: int) -> "Homebody":
    if os.getpid() != home:
        raise ValueError("only at home")
    return Homebody(size)


class Homebody:
    """Pickles, and can be made again in its own process only."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __reduce__(self) -> Any:
        return make_homebody, (os.getpid(), self.size), bytes(self.size)

    def __setstate__(self, state: bytes) -> None: ...


class Helper(Worker):
    """Does what the tests ask for."""

    made = 0

    def __init__(self, start: int = 1, *, word: str = "") -> None:
        super().__init__()
        self._start, self._word = start, word
        self._kept: Any = None
        self._random = np.random.rand()

    def add(self, number: int) -> int:
        """Adds the start and the rank."""
        return self._start + number + self._rank

    add_two = functools.partialmethod(add, 2)

    def word(self) -> str:
        return self._word

    def pid(self) -> int:
        return os.getpid()

    def homebody(self, size: int) -> Homebody:
        return Homebody(size)

    def echo(self, value: Any) -> Any:
        return value

    def fields(self) -> dict[str, Any]:
        names = (
            "_rank _world_size _worker_name _group_name _cluster_node_rank _node_local_rank _node_local_world_size _local_rank _local_world_size"
            " _local_accelerator_rank _local_hardware_ranks _node_group _accelerator_type _accelerator_model _master_address _isolate_gpu"
            " global_accelerator_ids accelerator_type torch_device_type hardware_type hardware_infos has_accelerator"
        )
        return {name: getattr(self, name) for name in names.split()} | {"text": str(self), "port": self._master_port}

    def environment(self) -> dict[str, str]:
        return dict(os.environ)

    def visible(self) -> int:
        """How many devices it is shown."""
        return len(os.environ["CUDA_VISIBLE_DEVICES"].split(","))

    # --- failures

    def fail_on(self, *ranks: int) -> int:
        if self._rank in ranks:
            raise KeyError(f"rank {self._rank} was told to")
        return self._rank

    def fail_stubbornly(self) -> None:
        raise Stubborn(1, 2)

    def fail_at_length(self, count: int) -> None:
        raise ValueError("x" * count)

    def leave(self) -> None:
        sys.exit(3)

    def lock(self) -> Any:
        return threading.Lock()

    def die_on(self, rank: int) -> int:
        if self._rank == rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return self._rank

    def hang_on(self, rank: int, path: str) -> int:
        """Waits until somebody writes into the pipe."""
        if self._rank == rank:
            with open(path, "rb") as pipe:
                pipe.read(1)
        return self._rank

    def fail_or_hang(self, path: str) -> None:
        """What a broken collective does: one fails, the others wait for it."""
        if self._rank == 0:
            raise RuntimeError("the collective is broken")
        self.hang_on(self._rank, path)

    def _private(self) -> None:
        raise AssertionError("nobody can call this")

    # --- memory

    def look_at(self, array: Any) -> tuple[bool, bool, float, str]:
        return bool(array.flags.writeable), bool(array.flags.owndata), float(array.sum()), str(array.dtype)

    def keep(self, array: Any) -> None:
        self._kept = array

    def kept(self) -> float:
        return float(self._kept.sum())

    def size(self, value: Any) -> int:
        return len(value)

    def zeros(self, count: int) -> Any:
        return np.zeros(count, np.uint8)

    # --- managers

    def find(self, address: str) -> Any:
        from roost import WorkerManager

        return WorkerManager.get_proxy().get_worker_info(address)

    def children(self) -> list[str]:
        made = [Worker(self.worker_address, 2, rank) for rank in range(2)]
        return [*(child._worker_name for child in made), str(made[1])]

    def use_devices(self, path: str, times: int) -> None:
        for _ in range(times):
            with self.device_lock, open(path, "a") as notes:
                notes.write(f"{self._rank}\n")
                notes.flush()
                with self.device_lock:  # lets go of nothing
                    os.sched_yield()
                os.sched_yield()
                notes.write(f"{self._rank}\n")

    def ports(self, count: int, most: int) -> list[int]:
        return [self.acquire_free_port(most) for _ in range(count)]

    # --- words and times

    def ring(self, path: str) -> None:
        """Tells whoever reads from the pipe there."""
        with open(path, "wb") as pipe:
            pipe.write(b"!")

    def hear(self, path: str) -> bytes:
        with open(path, "rb") as pipe:
            return pipe.read(1)

    def say(self, text: str) -> None:
        self.log_debug(f"debug {text}")
        self.log_info(f"info {text}")
        self.log_warning(f"warning {text}")
        self.log_error(f"error {text}")
        self.log_on_first_rank(f"first {text}")
        self.log_on_last_rank(f"last {text}")

    @Worker.timer("whole")
    def timed(self) -> None:
        with self.worker_timer():
            time.sleep(0.001)
        with self.worker_timer("part"):
            pass

    def time_afterwards(self) -> None:
        """Leaves a thread that belongs to this call, and times something when the next call lets it."""
        self._may_time = threading.Event()
        self._thread = threading.Thread(target=contextvars.copy_context().run, args=(self._time_when_let,))
        self._thread.start()

    def _time_when_let(self) -> None:
        self._may_time.wait(60)
        with self.worker_timer("late"):
            pass

    def let_it_time(self) -> None:
        self._may_time.set()
        self._thread.join()

    def soon(self, number: int) -> Any:
        """A plain method that gives something to await."""
        return self._later(number)

    async def _later(self, number: int) -> int:
        with self.worker_timer("later"):
            await asyncio.sleep(0)
        if number < 0:
            raise ValueError("too late")
        return number

    def blocks(self) -> int:
        """Blocks of memory that Python has in use."""
        gc.collect()
        return sys.getallocatedblocks()

    def random(self) -> tuple[float, float]:
        import random

        return random.random(), float(np.random.rand())

    def session(self) -> tuple[int, int, dict[int, str], list[int]]:
        files = {}
        for name in os.listdir("/proc/self/fd"):
            try:
                files[int(name)] = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue  # that of the listing itself
        ignored = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
        return os.getsid(0) - os.getpid(), os.getppid(), files, ignored


class Many(Helper):
    """For several calls at once in threads: each waits for the others."""

    def __init__(self) -> None:
        super().__init__()
        self._meeting = threading.Barrier(3)

    def meet(self) -> int:
        self._meeting.wait(60)
        return threading.active_count()


class Asynchronous(Helper):
    """For several calls at once on an event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._here, self._all = 0, asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def meet(self, count: int) -> bool:
        self._here += 1
        if self._here == count:
            self._all.set()
        await self._all.wait()
        return asyncio.get_running_loop() is self._loop and threading.current_thread() is threading.main_thread()

    async def fail(self) -> None:
        await asyncio.sleep(0)
        raise ValueError("later")


class Given(Helper):
    """Knows whether what it was made from is still there."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        super().__init__()
        self._given = weakref.ref(array)

    def has_given(self) -> bool:
        gc.collect()
        return self._given() is not None


class GivenLater(Given):
    """The same on an event loop."""

    async def nothing(self) -> None:
        pass


class Dropping(Helper):
    """Gives memory back to a driver that does not read."""

    def __init__(self) -> None:
        super().__init__()
        self._arrays: list[np.ndarray[Any, Any]] = []

    def keep_another(self, array: np.ndarray[Any, Any]) -> None:
        self._arrays.append(array)

    def drop_all(self, driver: int) -> int:
        """A thread of this process lets the driver go on: whoever holds it up holds up all."""
        with socket.socket(fileno=os.dup(3)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # as little as there may be: a few messages
        count = len(self._arrays)
        os.kill(driver, signal.SIGSTOP)
        threading.Timer(0.3, os.kill, (driver, signal.SIGCONT)).start()
        self._arrays.clear()
        return count


class Refusing(Helper):
    def __init__(self, rank: int, how: str = "raise") -> None:
        super().__init__()
        if self._rank == rank and how == "exit":
            sys.exit(7)
        if self._rank == rank and how == "die":
            os._exit(9)
        if self._rank == rank:
            raise LookupError("there is no such thing")


class Clashing(Worker):
    def execute_on(self) -> None:
        raise AssertionError("nobody can call this")


class Closing(Worker):
    def close(self) -> str:
        return f"closed by {self._rank}"


class Forking(Helper):
    """Has children of its own, which come back from where they started."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        if how:
            self.split(how)

    def split(self, how: str) -> str:
        """What the parent gives, once its child has ended, with the child's status."""
        child = os.fork()
        if child == 0:
            if how == "exit":
                sys.exit(5)
            if how == "raise":
                raise ValueError("in the child")
            return "child"
        _, status = os.waitpid(child, 0)
        return f"parent {os.waitstatus_to_exitcode(status)}"

    def let_go(self) -> int:
        """The child lets go of its copy of what is kept."""
        child = os.fork()
        if child == 0:
            self._kept = None
            gc.collect()
            os._exit(0)
        return os.waitpid(child, 0)[1]


class ForkingLater(Forking):
    """The same on an event loop."""

    async def nothing(self) -> None:
        pass


class Starving(Helper):
    def use_up(self, what: str) -> None:
        if what == "open files":
            opened = []
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
            with contextlib.suppress(OSError):
                while True:
                    opened.append(os.open("/dev/null", os.O_RDONLY))
            self._kept = opened
        else:
            with open("/proc/self/statm") as sizes:
                limit = int(sizes.read().split()[0]) * resource.getpagesize() + (20 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
