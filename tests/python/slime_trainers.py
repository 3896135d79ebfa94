"""Trainers for tests of roost.slime, as a user's module has them, and what their drivers begin with."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import roost

VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NCCL_CUMEM_ENABLE",
    "MINE",
    "RAY_USE_UVLOOP",
)


class Trainer:
    """Has slime's methods, and remembers how it was called."""

    def __init__(self, world_size: int, rank: int, master_addr: str, master_port: int) -> None:
        self.made = [world_size, rank, master_addr, master_port]
        self.rank = rank
        self.variables = {name: os.environ.get(name) for name in VARIABLES}
        self.calls: list[Any] = []

    def init(self, args: Any, role: str, with_ref: bool = False, with_opd_teacher: bool = False) -> int:
        self.calls.append(["init", role, with_ref, with_opd_teacher])
        return 3

    def train(self, rollout_id: int, data: Any, external_data: Any = None) -> Any:
        self.calls.append(["train", rollout_id, data, external_data])
        return [self.rank, rollout_id, data, external_data]

    def save_model(self, rollout_id: int, force_sync: bool = False) -> Any:
        return [self.rank, "saved", rollout_id, force_sync]

    def update_weights(self) -> Any:
        return [self.rank, "updated"]

    def wake_up(self) -> str:
        return "awake"

    def sleep(self) -> str:
        return "asleep"

    def clear_memory(self) -> str:
        return "cleared"

    def eval(self, rollout_id: int, data: Any) -> Any:
        return [self.rank, "eval", rollout_id, data]

    def set_rollout_manager(self, manager: Any) -> Any:
        self.calls.append(["manager", manager])
        return self.rank

    def seen(self) -> Any:
        return [self.made, self.variables, self.calls]

    def pid(self) -> int:
        return os.getpid()


class Faulty(Trainer):
    """Does what `data` says, on rank 1."""

    def train(self, rollout_id: int, data: Any, external_data: Any = None) -> Any:
        if self.rank == 1 and data == "raise":
            raise ValueError("no good data")
        if self.rank == 1 and data == "die":
            os._exit(3)
        if self.rank == 1 and data == "hang":
            time.sleep(600)
        return self.rank

    def update_weights(self) -> Any:
        if self.rank == 1:
            time.sleep(600)


class Unmade(Trainer):
    """A constructor that fails on rank 1 while a file is there."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        if self.rank == 1 and Path(os.environ["MINE"]).exists():
            raise ValueError("cannot be made")


class Hanging(Trainer):
    """A constructor that does not return on rank 1."""

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        if self.rank == 1:
            time.sleep(600)


class HangingInit(Trainer):
    def init(self, *args: Any, **words: Any) -> int:
        if self.rank == 1:
            time.sleep(600)
        return 3


class Divided(Trainer):
    def init(self, *args: Any, **words: Any) -> int:
        return self.rank


class WithoutInit:
    """A class that is no trainer."""


def job(**words: Any) -> SimpleNamespace:
    """Four trainers, and four GPUs for rollout."""
    sizes = {"actor_num_nodes": 1, "actor_num_gpus_per_node": 4, "rollout_num_gpus": 4, "num_gpus_per_node": 8}
    return SimpleNamespace(**(sizes | {"train_env_vars": {}, "start_rollout_id": None} | words))


def say(error: BaseException) -> list[str]:
    return [type(error).__name__, str(error).splitlines()[0]]


def refused(call: Any, *args: Any, **words: Any) -> Any:
    """What a call raised."""
    try:
        call(*args, **words)
    except (roost.Error, TypeError, AttributeError) as error:
        return say(error)
    return None
