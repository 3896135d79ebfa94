"""The process that holds the nodes of a test's Ray cluster (ray_cluster.py): each line of JSON on its standard input is
a request, and is answered by one. The nodes end with it, and it ends with its standard input."""

import json
import os
import sys
import threading
import time
from typing import Any


class Holder:
    """The nodes."""

    def __init__(self, request: dict[str, Any]) -> None:
        from ray._private.node import Node
        from ray.cluster_utils import Cluster

        # Started even without a dashboard, to count what nobody counts here.
        Node.start_api_server = lambda *args, **words: None  # type: ignore[method-assign]
        self.cluster = Cluster()
        self.started: dict[str, Any] = {}
        self.lost: list[Any] = []
        self.request = request
        for node in request["nodes"]:
            self.add(node)
        self.cluster.wait_for_nodes(timeout=120)

    def add(self, node: dict[str, Any]) -> None:
        is_head = not self.started
        settings: dict[str, Any] = (
            {
                "gcs_server_port": self.request["port"],
                "include_dashboard": False,
                "no_monitor": True,
                "include_log_monitor": self.request["shows_lines"],
            }
            if is_head
            else {}
        )
        # A worker inherits its raylet's environment, which is ours at the moment it starts.
        before = dict(os.environ)
        os.environ.update(node["variables"])
        try:
            self.started[node["address"]] = self.cluster.add_node(
                node_ip_address=node["address"],
                num_cpus=node["cpus"],
                num_gpus=node["gpus"],
                object_store_memory=256 << 20,
                **settings,
            )
        finally:
            os.environ.clear()
            os.environ.update(before)

    def kill(self, what: str) -> None:
        if what == "gcs":
            self.cluster.head_node.kill_gcs_server()
        else:
            self.started[what].kill_raylet()
            self.cluster.worker_nodes.discard(self.started[what])  # or it would be waited for when others join
            self.lost.append(self.started[what])

    def answer(self, request: dict[str, Any]) -> None:
        if "add" in request:
            self.add(request["add"])
            self.cluster.wait_for_nodes(timeout=120)
        elif "restart" in request:
            self.cluster.head_node.start_gcs_server()
            threading.Thread(target=self.reap, daemon=True).start()
        elif "signal" in request:
            (store,) = self.cluster.head_node.all_processes["gcs_server"]
            store.process.send_signal(request["signal"])
        else:
            self.kill(request["kill"])

    def reap(self) -> None:
        """Raylets end by themselves now. Their workers ask the kernel whether they are still there, and those that nobody has
        waited for are; on other machines that is somebody's task who does it."""
        while True:
            for node in [self.cluster.head_node, *self.cluster.worker_nodes]:
                for started in [info for infos in list(node.all_processes.values()) for info in infos]:
                    started.process.poll()
            time.sleep(0.1)

    def close(self) -> None:
        # Every process of every node is a child of ours: the cluster ends with it whole.
        for node in [*self.lost, *self.cluster.worker_nodes, self.cluster.head_node]:
            if node:
                node.kill_all_processes(check_alive=False, allow_graceful=False, wait=True)


def hold() -> None:
    # What Ray prints must not look like an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    holder = None
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if holder is None:
                holder = Holder(request)
            else:
                holder.answer(request)
            print("{}", file=answers, flush=True)
    finally:
        if holder:
            holder.close()


if __name__ == "__main__":
    hold()
