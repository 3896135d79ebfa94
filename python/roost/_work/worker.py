"""Worker: the base class of the processes of a worker group."""

import functools
import inspect
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from roost import _roost
from roost._plan.enums import AcceleratorType
from roost._plan.errors import EngineError
from roost._plan.nodes import Accelerator, HardwareInfo
from roost._work.addresses import WorkerAddress, WorkerInfo
from roost._work.engine import Surroundings
from roost._work.group import WorkerGroup
from roost._work.logs import worker_logger
from roost._work.managers import DeviceLockManager, WorkerManager
from roost._work.ports import acquire_free_port

TORCH_DEVICES = {
    AcceleratorType.NV_GPU: "cuda",
    AcceleratorType.AMD_GPU: "cuda",
    AcceleratorType.KUNLUN_XPU: "cuda",
    AcceleratorType.NPU: "npu",
    AcceleratorType.INTEL_GPU: "xpu",
    AcceleratorType.MUSA_GPU: "musa",
    AcceleratorType.NO_ACCEL: "cpu",
}

# What workers timed during the call that is being answered.
call_timers: ContextVar[dict[str, float] | None] = ContextVar("call_timers", default=None)

Function = TypeVar("Function", bound=Callable[..., Any])


class Hosting:
    """What the host sets before it makes the worker of this process."""

    environ: Mapping[str, str] | None = None
    surroundings = Surroundings()


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",") if word]


class Timer:
    """A block whose time is added to a worker's timer."""

    def __init__(self, worker: "Worker", tag: str) -> None:
        self._worker, self._tag = worker, tag

    def __enter__(self) -> "Timer":
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *raised: object) -> None:
        self._worker._add_time(self._tag, time.perf_counter() - self._begin)


class DeviceLock:
    """A lock of the worker's accelerators among the workers of the run: ``with self.device_lock: …``"""

    def __init__(self, worker: "Worker") -> None:
        self._worker = worker
        self._depth = 0  # the manager counts no nesting
        self._changing = threading.Lock()

    def acquire(self) -> None:
        """Waits until no other worker of the run holds the accelerators, then holds them."""
        with self._changing:
            if self._depth == 0:
                self._manager().acquire_devices(self._worker._worker_address, self._worker.global_accelerator_ids)
            self._depth += 1

    def release(self) -> None:
        """Releases the accelerators. Raises EngineError where the worker does not hold them."""
        with self._changing:
            if self._depth <= 1:
                self._manager().release_devices(self._worker._worker_address, self._worker.global_accelerator_ids)
            self._depth = max(0, self._depth - 1)

    def _manager(self) -> Any:
        return DeviceLockManager.get_proxy()

    def __enter__(self) -> "DeviceLock":
        self.acquire()
        return self

    def __exit__(self, *raised: object) -> None:
        self.release()


class Worker:
    """The base class of workers. Derive from it, then launch the class on a cluster:

    >>> from roost import Cluster, NodePlacementStrategy, Worker
    >>> class Adder(Worker):
    ...     def __init__(self, start):
    ...         super().__init__()
    ...         self._start = start
    ...     def add(self, number):
    ...         return self._start + number + self._rank

    Only a launch makes workers:

    >>> Adder(1)
    Traceback (most recent call last):
    RuntimeError: a worker is made by launching its class: Adder.create_group(...).launch(cluster)

    In the processes of the group, fields such as ``_rank``, ``_world_size`` and ``_group_name`` are set before the
    constructor runs.
    """

    _rank: int
    _world_size: int
    _group_name: str
    _worker_name: str

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        environ = Hosting.environ
        if environ is None:
            raise RuntimeError(
                f"a worker is made by launching its class: {cls.__name__}.create_group(...).launch(cluster)"
            )
        self = super().__new__(cls)
        self._read_environment(environ)
        return self

    def __init__(
        self, parent_address: WorkerAddress | None = None, world_size: int | None = None, rank: int | None = None
    ) -> None:
        if parent_address is not None:
            self._become_child(parent_address, world_size, rank)
        self._register()

    def _register(self) -> None:
        """Registers the worker with the managers, where there are any."""
        try:
            WorkerManager.get_proxy().register_worker(self._worker_address, self.worker_info)
        except EngineError as error:
            if self._rank == 0:  # one warning for all of them
                self.log_warning(f"the managers of the run cannot be reached, and do not know this group: {error}")

    def _read_environment(self, environ: Mapping[str, str]) -> None:
        """Sets the fields that the environment of the process has."""
        self._environ = environ
        self._group_name = environ["GROUP_NAME"]
        self._worker_name = environ["WORKER_NAME"]
        self._rank = int(environ["RANK"])
        self._world_size = int(environ["WORLD_SIZE"])
        self._node_rank = int(environ["NODE_RANK"])
        self._cluster_node_rank = int(environ["CLUSTER_NODE_RANK"])
        self._node_local_rank = int(environ["NODE_LOCAL_RANK"])
        self._node_local_world_size = int(environ["NODE_LOCAL_WORLD_SIZE"])
        self._local_rank = int(environ["LOCAL_RANK"])
        self._local_world_size = int(environ["LOCAL_WORLD_SIZE"])
        self._local_accelerator_rank = int(environ["LOCAL_ACCELERATOR_RANK"])
        self._local_hardware_ranks = numbers(environ["LOCAL_HARDWARE_RANKS"])
        self._visible_accelerators = numbers(environ["VISIBLE_DEVICES"])
        self._node_group = environ["NODE_GROUP_LABEL"]
        self._accelerator_type = AcceleratorType(environ["ACCELERATOR_TYPE"])
        self._accelerator_model = environ["ACCELERATOR_MODEL"]
        self._isolate_gpu = environ["ISOLATE_ACCELERATOR"] == "1"
        self._catch_system_failure = environ["CATCH_SYSTEM_FAILURE"] == "1"
        self._namespace = environ["CLUSTER_NAMESPACE"]
        self._master_address = environ["MASTER_ADDR"]
        self._master_port = int(environ["MASTER_PORT"])
        self._parent_address: WorkerAddress | None = None
        self._timers: dict[str, float] = {}
        self._timers_lock = threading.Lock()
        self._logger = worker_logger(self._group_name, self._rank, environ)

    def _become_child(self, parent: WorkerAddress, world_size: int | None, rank: int | None) -> None:
        """Makes it a worker inside a worker: same process, same devices, an address of its own."""
        if world_size is None or rank is None:
            raise _roost.Error("a worker with a parent_address needs its world_size and rank too")
        self._parent_address = parent
        self._rank, self._world_size = rank, world_size
        self._group_name = parent.get_name()
        self._worker_name = self._worker_address.get_name()
        self._logger = worker_logger(self._group_name, self._rank, self._environ)

    # --- identity and place

    @property
    def _worker_address(self) -> WorkerAddress:
        if self._parent_address is not None:
            return self._parent_address.get_child_address(self._rank)
        return WorkerAddress(self._group_name, ranks=self._rank)

    @property
    def worker_address(self) -> WorkerAddress:
        """The address under which the managers know the worker, such as ``actor:3``."""
        return self._worker_address

    @property
    def has_accelerator(self) -> bool:
        """Whether the worker has an accelerator."""
        return self._accelerator_type is not AcceleratorType.NO_ACCEL and bool(self._visible_accelerators)

    @property
    def accelerator_type(self) -> AcceleratorType:
        """The type of the worker's accelerators; NO_ACCEL where it has none."""
        return self._accelerator_type

    @property
    def global_accelerator_ids(self) -> list[int]:
        """The visible accelerators, numbered over the whole cluster."""
        first = Hosting.surroundings.first_accelerators.get(self._cluster_node_rank, 0)
        return [first + number for number in self._visible_accelerators]

    @property
    def torch_device_type(self) -> str:
        """torch's name for the type of device: "cuda", "npu", "cpu"…"""
        return TORCH_DEVICES[self._accelerator_type]

    @property
    def torch_platform(self) -> Any:
        """torch's module for the device, such as torch.cuda. Imports torch."""
        import torch

        return getattr(torch, self.torch_device_type)

    @property
    def hardware_type(self) -> str | None:
        """The hardware type that the ranks of its node group count; None where they count nodes."""
        known = Hosting.surroundings.hardware_types
        return known.get(self._node_group, Accelerator.HW_TYPE if self.has_accelerator else None)

    @property
    def hardware_infos(self) -> list[HardwareInfo]:
        """The units of hardware that the worker holds."""
        node = Hosting.surroundings.nodes.get(self._cluster_node_rank)
        resources = node.hardware_resources if node else []
        units = [info for resource in resources if resource.type == self.hardware_type for info in resource.infos]
        return [units[rank] for rank in self._local_hardware_ranks if rank < len(units)]

    @property
    def worker_info(self) -> WorkerInfo:
        """The record of the worker that the managers have."""
        node = Hosting.surroundings.nodes.get(self._cluster_node_rank)
        return WorkerInfo(
            address=self._worker_address,
            rank=self._rank,
            group_world_size=self._world_size,
            cluster_node_rank=self._cluster_node_rank,
            accelerator_type=self._accelerator_type,
            accelerator_model=self._accelerator_model,
            accelerator_rank=self._local_accelerator_rank,
            node_ip=node.node_ip if node and node.node_ip else "127.0.0.1",
            node_port=self._master_port if self._rank == 0 and self._parent_address is None else 0,
            available_accelerators=self.global_accelerator_ids,
            hardware_infos=self.hardware_infos,
        )

    @functools.cached_property
    def device_lock(self) -> DeviceLock:
        """The lock of the worker's accelerators, for ``with self.device_lock: …``."""
        return DeviceLock(self)

    def acquire_free_port(self, max_port_num: int | None = None) -> int:
        """A free port of this node that no other worker of the run gets; at most ``max_port_num``.

        Raises roost.Error where none is found.
        """
        return acquire_free_port(self._cluster_node_rank, self._worker_name, max_port_num)

    # --- words

    def log_debug(self, msg: Any) -> None:
        """Logs a message to the worker's stdout, with its group and rank. RLINF_LOG_LEVEL sets the level."""
        self._log(logging.DEBUG, msg)

    def log_info(self, msg: Any) -> None:
        """As log_debug, at the level INFO."""
        self._log(logging.INFO, msg)

    def log_warning(self, msg: Any) -> None:
        """As log_debug, at the level WARNING."""
        self._log(logging.WARNING, msg)

    def log_error(self, msg: Any) -> None:
        """As log_debug, at the level ERROR."""
        self._log(logging.ERROR, msg)

    def log_on_first_rank(self, msg: Any) -> None:
        """As log_info, on rank 0 only."""
        if self._rank == 0:
            self._log(logging.INFO, msg)

    def log_on_last_rank(self, msg: Any) -> None:
        """As log_info, on the last rank only."""
        if self._rank == self._world_size - 1:
            self._log(logging.INFO, msg)

    def _log(self, level: int, msg: Any) -> None:
        self._logger.log(level, "%s", msg, stacklevel=3)

    # --- timers

    def worker_timer(self, tag: str | None = None) -> Timer:
        """Times a block: ``with self.worker_timer("train"): …``. The tag is the method's name by default."""
        return Timer(self, sys._getframe(1).f_code.co_name if tag is None else tag)

    @staticmethod
    def timer(tag: str | None = None) -> Callable[[Function], Function]:
        """Times each call of a method: ``@Worker.timer("train")``. The tag is the method's name by default."""

        def decorate(function: Function) -> Function:
            name = function.__name__ if tag is None else tag
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def timed_async(self: Worker, *args: Any, **kwargs: Any) -> Any:
                    with Timer(self, name):
                        return await function(self, *args, **kwargs)

                return timed_async  # type: ignore[return-value]

            @functools.wraps(function)
            def timed(self: Worker, *args: Any, **kwargs: Any) -> Any:
                with Timer(self, name):
                    return function(self, *args, **kwargs)

            return timed  # type: ignore[return-value]

        return decorate

    def _add_time(self, tag: str, seconds: float) -> None:
        with self._timers_lock:
            for timers in (self._timers, call_timers.get()):
                if timers is not None:
                    timers[tag] = timers.get(tag, 0.0) + seconds

    def pop_execution_time(self, tag: str) -> float:
        """The seconds that were timed under this tag since the last pop. Raises ValueError where there are none."""
        with self._timers_lock:
            if tag not in self._timers:
                raise ValueError(
                    f"nothing was timed as {tag!r}; tags that were: {', '.join(sorted(self._timers)) or 'none'}"
                )
            return self._timers.pop(tag)

    def pop_execution_times(self) -> dict[str, float]:
        """The seconds that were timed under each tag since the last pop."""
        with self._timers_lock:
            times, self._timers = self._timers, {}
            return times

    # --- groups

    @classmethod
    def create_group(cls, *args: Any, **kwargs: Any) -> WorkerGroup:
        """Makes a group of this class. ``launch`` makes its workers with these arguments."""
        return WorkerGroup(cls, args, kwargs)

    def __repr__(self) -> str:
        return f"{self._group_name}(rank={self._rank})"


def is_worker_process(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process was started as a worker of a group."""
    return Hosting.environ is not None or "ROOST_CALL_SOCKET" in environ
