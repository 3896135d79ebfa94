"""Clusters that are shown to other processes, and clusters that are found there.

The driver's cluster goes to the keeper as a view: the snapshot of its nodes and the text of its config.
Whoever attaches builds its own from that, so it sees the same nodes and groups.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from roost import _roost
from roost._arguments import is_int
from roost._config import ClusterConfig, environment, is_mapping, node_group_configs, plain
from roost._managers import KeeperTransport, find_namespace, make_error, set_namespace
from roost._program import find_program
from roost._settings import port_base as set_port_base

if TYPE_CHECKING:
    from roost._cluster import Cluster


def section_of(cluster_cfg: Any) -> Any:
    """The ``cluster`` section of a config that came as a mapping, as JSON can hold it; None for a file."""
    if isinstance(cluster_cfg, ClusterConfig):
        cluster_cfg = cluster_cfg.section()
    if not is_mapping(cluster_cfg):
        return None
    return as_json(plain(cluster_cfg["cluster"] if "cluster" in cluster_cfg else cluster_cfg))


def as_json(value: Any) -> Any:
    value = plain(value)
    if is_mapping(value):
        return {str(key): as_json(value[key]) for key in value.keys()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [as_json(item) for item in value]
    return value if value is None or isinstance(value, bool) or is_int(value) else str(value)


def view_of(cluster: "Cluster", master_ip: str | None = "127.0.0.1", master_port: int | None = None) -> dict[str, Any]:
    """What the managers tell of a cluster, with the one thing that the C library does not know: a config that was a mapping."""
    view: dict[str, Any] = json.loads(_roost.view(cluster._value, cluster._config))
    if view["config"] is not None:
        view["config"]["section"] = cluster._section
    return view | {"master_ip": master_ip, "master_port": master_port}


def start_keeper(cluster: "Cluster", namespace: str | None = None, *, program: str | None = None, port_base: int | None = None) -> _roost.Keeper:
    """The managers' process for this cluster. It ends with this process, or when it is closed."""
    view = json.dumps(view_of(cluster), ensure_ascii=False)
    first = set_port_base() if port_base is None else port_base
    try:
        keeper = _roost.Keeper(environment(), program or find_program(), namespace, view, leases_master_port=True, port_base=first)
    except _roost.Error as error:
        raise make_error(error.code, str(error), "") from None
    set_namespace(keeper.namespace, is_new=True)
    return keeper


@contextmanager
def memory_file(content: bytes) -> Iterator[bytes]:
    """A path of a file that is nowhere."""
    fd = os.memfd_create("roost", os.MFD_CLOEXEC)
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        yield b"/proc/self/fd/%d" % fd
    finally:
        os.close(fd)


def config_of(view: dict[str, Any]) -> _roost.Config | None:
    written = view["config"]
    if written is None:
        return None
    if written["paths"] is not None:
        return _roost.Config(b"config", text=written["text"], paths=tuple(written["paths"]), env=environment())
    with memory_file(written["text"].encode()) as path:
        return _roost.Config(path, env=environment())


def cluster_of(view: dict[str, Any]) -> "Cluster":
    """The cluster that a view was made of."""
    from roost._cluster import Cluster

    config = config_of(view)
    snapshot = {"roost": 1, "cluster": {"nodes": view["nodes"], "node_groups": view["node_groups"]}}
    with memory_file(json.dumps(snapshot).encode()) as path:
        value = _roost.Cluster(path, config, 0)
    return Cluster._of(value, config, None if view["config"] is None else view["config"]["section"])


def cluster_config_of(view: dict[str, Any]) -> ClusterConfig | None:
    config = config_of(view)
    if config is None:
        return None
    section = view["config"]["section"]
    if section is not None:
        return ClusterConfig.from_dict_cfg(section)
    return ClusterConfig(config.num_nodes, dict.fromkeys(config.components), node_group_configs(config) or None)


def attach(cluster: "Cluster", namespace: str | None) -> str:
    """Makes it the cluster of a living run; the namespace of that."""
    name = namespace or find_namespace()
    transport = KeeperTransport(name)
    found = cluster_of(transport.call("NodeManager.get_view", []))
    transport.close()
    cluster._value, cluster._config, cluster._section = found._value, found._config, found._section
    set_namespace(name)
    return name
