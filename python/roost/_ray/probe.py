"""`roost probe --engine ray`: the nodes of the live Ray cluster as a snapshot, on standard output.

What goes wrong is an object of its own, {"error": ...}."""

import argparse
import json
import logging
import os
import sys

from roost import _roost
from roost._plan.errors import error_fields
from roost._ray.join import (
    alive_nodes,
    connect,
    find_address,
    leave,
    load_ray,
    refuse_initialised,
    wait_for_nodes,
    warn_open,
)
from roost._ray.nodes import LOCAL_NODE, answer_seconds, probe_nodes, snapshot


def say(words: str) -> None:
    print(f"roost: {words}", file=sys.stderr, flush=True)


def probe_cluster(address: str | None, num_nodes: int, timeout: float) -> str:
    """The nodes as they were found. The program that asks settles and orders them."""
    module = load_ray()
    refuse_initialised(module)
    found = find_address(address, say)
    ray = connect(module, found, "roost-probe")
    try:
        warn_open(ray)
        nodes = (
            wait_for_nodes(ray, num_nodes, timeout, ray.get_runtime_context().gcs_address, say)
            if num_nodes
            else alive_nodes(ray)
        )
        answers = probe_nodes(ray, nodes, answer_seconds(timeout))
    finally:
        leave(ray)
    if found is None:
        nodes = [node | {"NodeID": LOCAL_NODE} for node in nodes]
    return snapshot(nodes, answers)


def main() -> int:
    parser = argparse.ArgumentParser(prog="roost._ray.probe")
    parser.add_argument("--address")
    parser.add_argument("--num-nodes", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--for-run", action="store_true")
    options = parser.parse_args()
    # A run joins the cluster once more, and warns then.
    logging.basicConfig(
        format="roost: %(message)s", level=logging.ERROR if options.for_run else logging.WARNING, stream=sys.stderr
    )
    # What Ray prints must not become part of the snapshot.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        text = probe_cluster(options.address, options.num_nodes, options.timeout)
    except _roost.Error as error:
        print(json.dumps({"error": error_fields(error)}), file=answer, flush=True)
        return 1
    print(text, file=answer, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
