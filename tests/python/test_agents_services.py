"""Services and addresses of a run on several nodes: one supervisor decides, agents do it."""

import json
import re

from agents_home import EVERYWHERE, NODES, Home
from run_under_test import shell

SERVER = "trap 'echo {name} $RANK >> order; exit 3' TERM; echo up; while :; do sleep 0.02; done"


def test_services_of_all_nodes_end_with_the_job_in_their_order(home: Home) -> None:
    launch = {
        "store": shell(SERVER.format(name="store"), service=True, ready={"line": "up"}),
        "rollout": shell(SERVER.format(name="rollout"), service=True, ready={"line": "up"}, after=["store"]),
        "deaf": shell("trap '' TERM; echo up; while :; do sleep 1; done", service=True, ready={"line": "up"}),
        "actor": shell("echo trained", after=["rollout", "deaf"]),
    }
    run = home.start({"store": "5", "rollout": EVERYWHERE, "deaf": "0", "actor": EVERYWHERE}, launch, "--grace", "1")
    assert run.end() == 0, run.err
    names = [line.split()[0] for line in (home.folder / "order").read_text().splitlines()]
    assert names == ["rollout"] * NODES + ["store"]
    counts = dict(re.findall(r"^roost:   (\w+) +(.*)$", run.err, re.M))
    assert counts == {"store": "1 done", "rollout": f"{NODES} done", "deaf": "1 done", "actor": f"{NODES} done"}
    assert run.is_gone()


def test_a_service_of_another_node_that_ends_fails_the_run(home: Home) -> None:
    launch = {"rollout": shell("exit 0", service=True), "actor": shell("exec sleep 1000")}
    run = home.start({"rollout": "3", "actor": EVERYWHERE}, launch)
    assert run.end() == 1
    assert (
        "first failure: rollout/0 on node 1 (10.0.0.2): this service ended by itself, with status 0, before the job was done"
        in run.err
    )
    assert run.is_gone()


def test_addresses_name_the_nodes_where_the_others_are(home: Home) -> None:
    launch = {
        "rollout": shell('echo "$ROOST_PORT_HTTP"', ports={"http": 1}),
        "actor": shell(
            'echo "$ROOST_ADDRESSES_ROLLOUT_HTTP"; echo "$LAST"',
            env={"LAST": "%{rollout.2.host}:%{rollout.2.port.http}"},
        ),
    }
    run = home.start({"rollout": EVERYWHERE, "actor": "4"}, launch)
    assert run.end() == 0, run.err
    ports = [run.log("rollout", rank).decode().strip() for rank in range(NODES)]
    wanted = [f"10.0.0.{rank + 1}:{port}" for rank, port in enumerate(ports)]
    assert run.log("actor", 0).decode().split() == [",".join(wanted), wanted[2]]


def test_a_list_that_is_too_long_for_a_variable_is_a_file_on_each_node(home: Home) -> None:
    """Names of nodes are long here, so that a few hundred ranks make more than 64 KiB."""
    path = home.folder / "nodes.json"
    snapshot = json.loads(path.read_text())
    for node in snapshot["cluster"]["nodes"]:
        node["address"] = f"{'n' * 60}.{'m' * 60}.{'o' * 60}.{'p' * 60}{node['node_rank']}"
    path.write_text(json.dumps(snapshot))
    ranks = 300
    told = 'echo "[$ROOST_ADDRESSES_ROLLOUT_HTTP]"; stat -c %a "$ROOST_ADDRESSES_ROLLOUT_HTTP_FILE"; cat "$ROOST_ADDRESSES_ROLLOUT_HTTP_FILE"; dirname "$ROOST_ADDRESSES_ROLLOUT_HTTP_FILE" >&2'
    launch = {"rollout": {"command": ["true"], "ports": {"http": 1}}, "actor": shell(told, after=["rollout"])}
    run = home.start({"rollout": f"0-5:0-{ranks - 1}", "actor": EVERYWHERE}, launch, "--quiet")
    assert run.end() == 0, run.err
    folders = set()
    for rank in range(NODES):
        empty, mode, text = run.log("actor", rank).decode().split("\n")
        assert (empty, mode) == ("[]", "600")
        hosts = [entry.rpartition(":")[0] for entry in text.split(",")]
        assert hosts == [snapshot["cluster"]["nodes"][number * NODES // ranks]["address"] for number in range(ranks)]
        assert len(text) > 65536
        folders.add(run.log("actor", rank, "stderr"))
    assert len(folders) == NODES  # each node has its own
    assert run.is_gone()  # with these folders
