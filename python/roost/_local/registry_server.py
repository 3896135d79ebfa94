"""The registry server of a cluster on this machine: the process that holds what the managers remember."""

import json
import os

from roost import _roost
from roost._plan.cluster import PlanningCluster
from roost._plan.config import environment
from roost._plan.errors import error_fields, make_error
from roost._plan.view import view_of
from roost._work.managers import set_namespace
from roost._work.program import find_program


def start_registry_server(
    cluster: PlanningCluster, namespace: str | None = None, *, program: str | None = None, port_base: int | None = None
) -> _roost.RegistryServer:
    """The managers' process for this cluster. It ends with this process, or when it is closed."""
    view = json.dumps(view_of(cluster), ensure_ascii=False)
    first = _roost.settings(os.environ)[0] if port_base is None else port_base
    try:
        server = _roost.RegistryServer(
            environment(), program or find_program(), namespace, view, leases_master_port=True, port_base=first
        )
    except _roost.Error as error:
        raise make_error(**error_fields(error)) from None
    set_namespace(server.namespace, is_new=True)
    return server


def has_ended(server: _roost.RegistryServer) -> bool:
    """Whether it was killed: it is gone, and this process, which started it, has not closed it."""
    try:
        return os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # another part of this process has waited for it
        return True
