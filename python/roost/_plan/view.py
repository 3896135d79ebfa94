"""A cluster as the view that the managers serve, and the cluster that a view describes.

The driver gives the managers a view of its cluster: the snapshot of its nodes and the text of its config. A process that
attaches builds its own cluster from the view, so it sees the same nodes and node groups.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from roost import _roost
from roost._plan.arguments import is_int
from roost._plan.cluster import PlanningCluster
from roost._plan.config import ClusterConfig, environment, is_mapping, node_group_configs, plain


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


def view_of(
    cluster: PlanningCluster, master_ip: str | None = "127.0.0.1", master_port: int | None = None
) -> dict[str, Any]:
    """The view of a cluster, with the one thing that the C library does not know: a config that came as a mapping."""
    view: dict[str, Any] = json.loads(_roost.view(cluster._value, cluster._config))
    if view["config"] is not None:
        view["config"]["section"] = cluster._section
    return view | {"master_ip": master_ip, "master_port": master_port}


@contextmanager
def memory_file(content: bytes) -> Iterator[bytes]:
    """The path of a file that exists in memory only."""
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


def cluster_of(view: dict[str, Any]) -> PlanningCluster:
    """The cluster that a view was made of."""
    config = config_of(view)
    snapshot = {"roost": 1, "cluster": {"nodes": view["nodes"], "node_groups": view["node_groups"]}}
    with memory_file(json.dumps(snapshot).encode()) as path:
        value = _roost.Cluster(path, config, 0)
    return PlanningCluster._of(value, config, None if view["config"] is None else view["config"]["section"])


def cluster_config_of(view: dict[str, Any]) -> ClusterConfig | None:
    config = config_of(view)
    if config is None:
        return None
    section = view["config"]["section"]
    if section is not None:
        return ClusterConfig.from_dict_cfg(section)
    return ClusterConfig(config.num_nodes, dict.fromkeys(config.components), node_group_configs(config) or None)
