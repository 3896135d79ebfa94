"""The registry server of a cluster on this machine: the process that holds what the managers remember."""

import atexit
import json
import logging
import os
import threading
import weakref

from roost import _roost
from roost._plan.cluster import PlanningCluster
from roost._plan.config import environment
from roost._plan.errors import EngineError, error_fields, make_error
from roost._plan.view import view_of
from roost._work.managers import set_namespace
from roost._work.program import find_program


def start_registry_server(
    cluster: PlanningCluster,
    namespace: str | None = None,
    *,
    program: str | None = None,
    port_base: int | None = None,
    is_own: bool = True,
) -> _roost.RegistryServer:
    """The managers' process for this cluster. It ends with this process, or when it is closed. With `is_own` the proxies of this
    process ask it from now on."""
    view = json.dumps(view_of(cluster), ensure_ascii=False)
    first = _roost.settings(os.environ)[0] if port_base is None else port_base
    try:
        server = _roost.RegistryServer(
            environment(), program or find_program(), namespace, view, leases_master_port=True, port_base=first
        )
    except _roost.Error as error:
        raise make_error(**error_fields(error)) from None
    if is_own:
        set_namespace(server.namespace, is_new=True)
    return server


def has_ended(server: _roost.RegistryServer) -> bool:
    """Whether it was killed: it is gone, and this process, which started it, has not closed it."""
    try:
        return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # another part of this process has waited for it
        return True


class Managers:
    """The registry server of one Cluster. It starts with the Cluster, so that other processes find the run, and again when it was
    killed. It ends with the Cluster and its last group, or when this process ends."""

    def __init__(self, cluster: PlanningCluster, asked: str | None) -> None:
        """`asked` is the namespace that the caller wants; None = the first free one."""
        # Not the Cluster itself: that has this, and would then never be freed at once.
        self._cluster = PlanningCluster._of(cluster._value, cluster._config, cluster._section)
        self._asked = asked
        self._server: _roost.RegistryServer | None = None
        self._driver = 0  # the process that started it
        self._is_asked = False  # by this process
        self._lock = threading.Lock()
        LIVING.add(self)

    def open(self) -> None:
        """Starts the registry server for others to find. The proxies of this process go on asking whom they asked."""
        with self._lock:
            self._server = start_registry_server(self._cluster, self._asked, is_own=False)
            self._driver = os.getpid()

    @property
    def namespace(self) -> str:
        """The namespace of the registry server, which this starts where it does not run. The proxies of this process ask it."""
        with self._lock:
            if self._server is None:
                self._server = start_registry_server(self._cluster, self._asked)
                self._driver = os.getpid()
            elif self._driver == os.getpid() and has_ended(self._server):  # a forked process uses those of its parent
                self._server = self._start_again(self._server)
            elif not self._is_asked:
                set_namespace(self._server.namespace, is_new=True)
            self._is_asked = True
            return self._server.namespace

    def _start_again(self, lost: _roost.RegistryServer) -> _roost.RegistryServer:
        """Starts a registry server in the namespace of the lost one, which running workers know; in another namespace where that is
        taken by now."""
        lost.close()
        message = "the managers of namespace '%s' have ended and are started again: what was registered and locked there is lost"
        logging.getLogger("roost").warning(message, lost.namespace)
        try:
            return start_registry_server(self._cluster, lost.namespace)
        except EngineError:
            if self._asked is not None:
                raise
            return start_registry_server(self._cluster)

    def close(self) -> None:
        """Ends the registry server. Another request starts a new one."""
        with self._lock:
            if self._server is not None:
                if self._is_asked:
                    set_namespace(None)
                self._server.close()
                self._server, self._is_asked = None, False


LIVING: weakref.WeakSet[Managers] = weakref.WeakSet()


@atexit.register
def close_all() -> None:
    """Runs after the groups of this process are closed: they were made later."""
    for managers in list(LIVING):
        managers.close()


def open_managers(cluster: PlanningCluster, asked: str | None) -> Managers:
    """The managers of a new Cluster, as far as they can start now. Planning needs none: what keeps them from starting is reported
    when they are needed. A namespace that was asked for is reported at once."""
    managers = Managers(cluster, asked)
    try:
        managers.open()
    except _roost.Error:
        if asked is not None:
            raise
    return managers
