"""The door to Ray: the engine asks the session of Ray that it joined, and no other.

Ray starts or joins a cluster by itself when it is asked for something and there is none. Between `ray.shutdown()` of a program and
the end of its run that would start what nobody wants, or knock for a minute at a cluster that is gone. So that is switched off
while this process is in a session of roost's, for all callers; and `Session` stands in for the module, and refuses what is asked
of it when its session is over, also when the program has joined another one since."""

import importlib
import logging
import weakref
from typing import Any

from roost._arguments import fault
from roost._errors import EngineError

log = logging.getLogger("roost")

ASK_NOBODY = ("cloudpickle", "exceptions")  # parts of Ray that work without a cluster

was_starting: bool | None = None  # Ray's own setting; None while it has that


class Session:
    """Ray, for as long as this process is in the session in which this was made."""

    def __init__(self, ray: Any) -> None:
        self._module = ray
        # Every ray.init() makes another object of the node that this process is on, and ray.shutdown() lets go of it. Numbers of
        # jobs do not tell sessions apart: a new cluster begins with the same ones.
        self._node = weakref.ref(ray._private.worker.global_worker.node)

    @property
    def is_joined(self) -> bool:
        node = self._node()
        return node is not None and self._module._private.worker.global_worker.node is node

    def become(self, other: "Session") -> None:
        """Stands for the session of the other from now on."""
        self._node = other._node

    def check(self) -> None:
        if not self.is_joined:
            raise fault(
                EngineError, "Ray was shut down in this process, and its run and groups have ended with that",
                hint="make a Cluster and launch its groups again; a run leaves Ray by itself when the program ends",
            )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name not in ASK_NOBODY:
            self.check()
        return getattr(self._module, name)


def switch() -> Any:
    """Ray's module that starts a cluster where there is none; its functions look at `enable_auto_connect` at each call."""
    return importlib.import_module("ray._private.auto_init_hook")


def forbid_start() -> None:
    """Ray starts nothing by itself until `allow_start`."""
    global was_starting
    if was_starting is None:
        try:
            hook = switch()
            before = bool(hook.enable_auto_connect)
            hook.enable_auto_connect = False
            was_starting = before
        except (ImportError, AttributeError) as error:  # of another Ray than was seen: Session still refuses
            log.debug("this version of Ray cannot be told to start nothing by itself: %s", error)


def allow_start() -> None:
    """As it was before `forbid_start`."""
    global was_starting
    if was_starting is not None:
        switch().enable_auto_connect = was_starting
        was_starting = None
