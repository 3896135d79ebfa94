"""Joining Ray: which cluster is found or started, whose run is attached to, what is asked of the nodes before anything
runs there, and what is warned of.

One cluster of two nodes serves all tests that need one; those that start a Ray of their own come first."""

import importlib
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from ray_cluster import WAIT, RayCluster, free_port, last_json, merged
from roost._ray import join as ray_join

pytestmark = pytest.mark.ray

OPEN = "this Ray cluster has no token: any host that reaches it can run programs as you"


def roost_program(
    home: RayCluster, *words: str, folder: Path | None = None, **more: str | None
) -> subprocess.CompletedProcess[str]:
    """The program, where nobody names a cluster."""
    environment = merged(
        home.environment, {"ROOST_PYTHON": sys.executable, "ROOST_PROGRAM": home.environment["ROOST"]} | more
    )
    return subprocess.run(
        [home.environment["ROOST"], *words],
        env=environment,
        cwd=folder or home.folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
        stdin=subprocess.DEVNULL,
    )


def drive(home: RayCluster, script: str, **more: str | None) -> Any:
    """A driver that nobody tells of a cluster."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=merged(home.environment, more),
        cwd=home.folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return last_json(done.stdout, done.stderr), done.stderr


def write_config(home: RayCluster, name: str, text: Any) -> str:
    (home.folder / name).write_text(json.dumps(text))
    return name


# --- without a cluster


@pytest.fixture(scope="module")
def nowhere() -> Iterator[RayCluster]:
    """A home where no Ray runs."""
    home = RayCluster(nodes=1, gpus=0, token=False)
    yield home
    home.close()


def test_a_run_of_commands_starts_a_ray_of_its_own_where_there_is_none(nowhere: RayCluster) -> None:
    launch = {"a": {"command": ["sh", "-c", "echo rank $RANK of $WORLD_SIZE on $MASTER_ADDR"]}}
    config = write_config(
        nowhere,
        "c.yaml",
        {
            "cluster": {"num_nodes": 1, "component_placement": {"a": 0}},
            "roost": {"logs": {"dir": "runs"}, "launch": launch},
        },
    )
    done = roost_program(nowhere, "run", "--engine", "ray", config)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[a/0] rank 0 of 1 on ")
    # Ray is joined twice, by who plans and by who runs.
    assert (
        done.stderr.count("no Ray cluster of this user was found here and RAY_ADDRESS is not set: one is started") == 1
    )
    assert done.stderr.count(OPEN) == (1 if ray_join.has_other_hosts() else 0)


def test_a_cluster_starts_a_ray_of_its_own_where_there_is_none(nowhere: RayCluster) -> None:
    seen, _ = drive(
        nowhere,
        """
        import json, ray, roost
        try:
            roost.Cluster(engine="ray")
        except roost.EngineError as error:
            nothing = str(error)
        cluster = roost.Cluster(num_nodes=1, engine="ray")
        print(json.dumps([nothing, cluster.num_nodes, cluster.namespace, len(ray.nodes()), [node.ray_id for node in cluster.nodes] == [ray.get_runtime_context().get_node_id()]]))
        """,
    )
    assert seen == ["there is no Ray cluster to attach to (set RAY_ADDRESS to it)", 1, "roost", 1, True]


def test_an_address_of_the_config_is_blamed_as_the_configs(nowhere: RayCluster) -> None:
    launch = {"a": {"command": ["true"]}}
    config = write_config(
        nowhere, "d.yaml", {"cluster": {"num_nodes": 1, "component_placement": {"a": 0}}, "roost": {"launch": launch}}
    )
    write_config(
        nowhere,
        "nodes.json",
        {"roost": 1, "cluster": {"nodes": [{"id": "ab" * 28, "address": "10.0.0.1", "num_accelerators": 1}]}},
    )
    address = f"127.0.0.1:{free_port()}"
    done = roost_program(
        nowhere, "run", "--engine", "ray", "--cluster", "nodes.json", config, f"roost.ray.address={address}"
    )
    assert (
        done.returncode == 5
        and f"nobody answers at {address}, which roost.ray.address names as the Ray cluster" in done.stderr
    ), done.stderr


def test_the_users_own_cluster_is_looked_for_where_ray_notes_it_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "127.0.0.1:%d" % server.getsockname()[1]
        for name in ("mine", "other"):
            (tmp_path / name / "ray").mkdir(parents=True)
        note = tmp_path / "mine" / "ray" / "ray_current_cluster"
        note.write_text(address)
        for variables, found in (
            ({"RAY_TMPDIR": "mine"}, address),
            ({"TMPDIR": "mine"}, address),
            ({"RAY_TMPDIR": "other", "TMPDIR": "mine"}, None),
            ({"RAY_TMPDIR": "mine", "TMPDIR": "other"}, address),
        ):
            for name in ("RAY_TMPDIR", "TMPDIR", "RAY_ADDRESS"):
                monkeypatch.delenv(name, raising=False)
            for name, folder in variables.items():
                monkeypatch.setenv(name, str(tmp_path / folder))
            assert ray_join.own_cluster() == found, variables
        assert [ray_join.find_address(None), ray_join.find_address("auto"), ray_join.find_address("local")] == [
            address,
            address,
            None,
        ]
        monkeypatch.setattr(os, "getuid", lambda: note.stat().st_uid + 1)
        with pytest.raises(
            roost.EngineError, match="roost.ray.address is 'auto', but no Ray cluster of this user runs on this machine"
        ):
            ray_join.find_address("auto")
    monkeypatch.undo()
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path / "mine"))
    assert ray_join.own_cluster() is None  # nobody is there any more


def test_an_address_of_a_web_server_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the dashboard is one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:%d" % server.server_port)
        with pytest.raises(
            roost.EngineError,
            match=f"^RAY_ADDRESS is '127.0.0.1:{server.server_port}', which is a web server's and not the Ray cluster's .the dashboard has an address of its own",
        ):
            ray_join.find_address(None)
        server.shutdown()
    with pytest.raises(
        roost.EngineError,
        match="^roost.ray.address is 'http://head:8265', which is a web server's and not the Ray cluster's",
    ):
        ray_join.find_address("http://head:8265")


def test_an_address_without_a_port_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("head", "head:", "head:ray", "[::1]"):
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(roost.EngineError) as caught:
            ray_join.find_address(None)
        assert (
            str(caught.value)
            == f"RAY_ADDRESS is '{address}', which names no port (give the address host:port that `ray start --head` printed (port 6379 unless another was chosen))"
        )


def test_an_address_of_rays_client_is_refused_with_one_that_would_do(
    nowhere: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "but a cluster is joined as one of its nodes, and not through Ray's client"
    cure = "give the address host:port of the cluster's head, and run on one of its nodes"
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    for configured, said in (
        (None, "RAY_ADDRESS is 'ray://head:10001'"),
        ("ray://127.0.0.1:1", "roost.ray.address is 'ray://127.0.0.1:1'"),
    ):
        with pytest.raises(roost.EngineError) as caught:
            ray_join.find_address(configured)
        assert str(caught.value) == f"{said}, {words} ({cure})"
    done = roost_program(nowhere, "probe", "--engine", "ray", RAY_ADDRESS="ray://head:10001")
    assert (
        done.returncode == 5
        and done.stderr.startswith(f"roost: error: RAY_ADDRESS is 'ray://head:10001', {words}\n")
        and cure in done.stderr
    ), done.stderr


def warnings_of(
    addresses: list[str],
    interfaces: dict[str, int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    has_token: bool = False,
) -> int:
    import ray._private.authentication.authentication_utils as authentication

    caplog.clear()
    monkeypatch.setattr(authentication, "is_token_auth_enabled", lambda: has_token)
    monkeypatch.setattr(socket, "if_nameindex", lambda: list(enumerate(interfaces)))
    monkeypatch.setattr(ray_join, "flags_of", lambda asker, name: interfaces[name])
    ray_join.warn_open(
        SimpleNamespace(nodes=lambda: [{"Alive": True, "NodeManagerAddress": address} for address in addresses])
    )
    return caplog.text.count(OPEN)


def test_a_cluster_that_others_can_reach_is_warned_of_with_or_without_a_way_to_the_world(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    own, cable, no_cable, off = 0x49, 0x1043, 0x1003, 0x1002
    for addresses, interfaces, expected in (
        (["127.0.0.1"], {"lo": own}, 0),
        (["127.0.0.1", "127.0.0.2"], {"lo": own, "eth0": off, "docker0": no_cable}, 0),
        (["127.0.0.1"], {"lo": own, "eth0": cable}, 1),
        (["10.0.0.1"], {"lo": own}, 1),
        (["127.0.0.1", "10.0.0.1"], {"lo": own}, 1),
        (["::1"], {"lo": own}, 0),
        (["fd00::2"], {"lo": own}, 1),
    ):
        assert warnings_of(addresses, interfaces, monkeypatch, caplog) == expected, (addresses, interfaces)
        assert warnings_of(addresses, interfaces, monkeypatch, caplog, has_token=True) == 0


def test_the_flags_of_interfaces_are_the_kernels() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        for _, name in socket.if_nameindex():
            flags = int(Path(f"/sys/class/net/{name}/flags").read_text(), 16)
            mask = ray_join.UP | ray_join.LOOPBACK
            assert ray_join.flags_of(asker, name) & mask == flags & mask, name
        assert ray_join.flags_of(asker, "not-there") == 0


def test_an_agent_that_is_on_another_node_than_planned_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    from roost._ray.agent import Agent

    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: "ee"))
    monkeypatch.setattr("roost._ray.agent.find_program", lambda: pytest.fail("something was started"))
    with pytest.raises(
        roost.EngineError, match="the agent of node 2 is not as planned: it is on node ee and not on aa"
    ):
        Agent("abcdef", 2, "aa")


def test_nodes_that_have_other_accelerators_than_was_said_are_told(caplog: pytest.LogCaptureFixture) -> None:
    from roost._ray.run import warn_of_counts

    value = roost.Cluster(cluster="1x8,1x4")._value
    warn_of_counts(value, 8)
    assert [record.getMessage() for record in caplog.records] == [
        "num_gpus_per_node is 8, but node 1 has 4 accelerators: on Ray the nodes tell, leave it out"
    ]
    warn_of_counts(roost.Cluster(cluster="2x8")._value, 8)
    assert len(caplog.records) == 1


def test_ports_are_free_again_when_their_group_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roost._ray.ports import PortHolder

    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    holder = PortHolder("abcdef")
    for number in range(1100):  # more than a process may have at a time
        ports = holder.lease((1, 2), f"group {number}")
        assert len(ports) == 2
        holder.free(f"group {number}")
    holder.free("nobody")


def test_every_line_is_shown_also_when_the_program_imported_ray_first(monkeypatch: pytest.MonkeyPatch) -> None:
    reader: Any = importlib.import_module("ray._private.ray_logging")
    for value, shows_all in (("1", False), ("0", True), (None, True)):
        monkeypatch.setattr(reader, "RAY_DEDUP_LOGS", True)
        monkeypatch.setenv("RAY_DEDUP_LOGS", value or "")
        if value is None:
            monkeypatch.delenv("RAY_DEDUP_LOGS")
        ray_join.load_ray()
        assert reader.RAY_DEDUP_LOGS is not shows_all, value


def test_a_node_without_roost_is_told_how_it_is_installed() -> None:
    from roost._ray.nodes import check_probe

    with pytest.raises(
        roost.EngineError,
        match=r"node 10.0.0.1 has no working roost for /p: ImportError: no \(install roost .* there, in a copy of its sources: /p -m pip install \.\)",
    ):
        check_probe("10.0.0.1", {"python": "/p", "error": "ImportError: no"})


# --- with one


@pytest.fixture(scope="module")
def two() -> Iterator[RayCluster]:
    with RayCluster(nodes=2, gpus=2) as cluster:
        yield cluster


def test_the_users_own_cluster_is_joined_and_one_with_a_token_is_not_warned_of(two: RayCluster) -> None:
    """With the user's own token, and nobody says that one is to be used."""
    home = two.folder / "owner"
    (home / ".ray").mkdir(parents=True)
    (home / ".ray" / "auth_token").write_bytes((two.folder / "token").read_bytes())
    # By the Python beside the program, which `make build` leaves there.
    done = roost_program(
        two,
        "probe",
        "--engine",
        "ray",
        "--json",
        RAY_ADDRESS="auto",
        ROOST_PYTHON="",
        HOME=str(home),
        RAY_AUTH_MODE=None,
        RAY_AUTH_TOKEN_PATH=None,
    )
    assert done.returncode == 0, done.stderr
    assert [node["address"] for node in json.loads(done.stdout)["cluster"]["nodes"]] == [
        "127.0.0.2",
        "127.0.0.3",
    ] and OPEN not in done.stderr
    assert "oken" not in done.stderr  # one that was asked for and said is nothing to talk of


def test_the_program_runs_no_module_of_the_current_folder_here_or_on_the_nodes(two: RayCluster, tmp_path: Path) -> None:
    for name in ("ray", "roost", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'trapped')!r}, 'a').write('{name} ')\n")
    (tmp_path / "c.yaml").write_text("cluster: {num_nodes: 2, component_placement: {a: 0-3}}\n")
    done = roost_program(two, "plan", "--engine", "ray", "c.yaml", folder=tmp_path, RAY_ADDRESS=two.address)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "trapped").exists(), (tmp_path / "trapped").read_text()


def test_a_wrong_token_is_refused_once(two: RayCluster) -> None:
    (two.folder / "wrong").write_text("f" * 64)
    done = roost_program(two, "probe", "--engine", "ray", RAY_AUTH_TOKEN_PATH=str(two.folder / "wrong"))
    assert (
        done.returncode == 5
        and f"roost: error: the Ray cluster at {two.address} does not accept this process: its token is missing or wrong"
        in done.stderr
    )
    assert done.stderr.count("gcs_client.cc") <= 1 and "f" * 64 not in done.stderr


def test_what_is_waited_for_is_said_in_roosts_name(two: RayCluster) -> None:
    often = "import roost._ray.join as joining, runpy; joining.SAY_EVERY = 0.3; runpy.run_module('roost._ray.probe', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", often, "--num-nodes", "3", "--timeout", "3", "--for-run"],
        env=two.driver(),
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 1 and json.loads(done.stdout)["error"]["message"].startswith(
        "1 of 3 nodes are missing; there: 127.0.0.2 "
    )
    assert done.stderr.startswith("roost: waiting for nodes: 1 of 3 nodes are missing; there: 127.0.0.2 "), done.stderr


def test_what_failed_leaves_the_process_free_and_another_config_is_another_wish(two: RayCluster) -> None:
    """Of a driver that finds the user's own cluster, and that it has a token, by itself."""
    section = {"num_nodes": 2, "component_placement": {"a": "0-3"}}
    write_config(two, "a.yaml", {"cluster": section})
    write_config(two, "b.yaml", {"cluster": section | {"component_placement": {"a": "0-1"}}})
    seen, said = drive(
        two,
        """
        import json, os, ray, roost
        section = {"num_nodes": 2, "component_placement": {"a": "0-3"}}
        def wish(*arguments, **words):
            try:
                return roost.Cluster(*arguments, engine="ray", **words).namespace
            except roost.EngineError as error:
                return str(error)
        seen = [wish(), ray.is_initialized(), wish(namespace="nobodys"), ray.is_initialized(), os.environ.get("RAY_AUTH_MODE")]
        seen += [wish(cluster_cfg="a.yaml"), wish(cluster_cfg="a.yaml"), wish(cluster_cfg="b.yaml")[:40]]
        seen += [wish(cluster_cfg={"cluster": section, "roost": {"ray": {"reserve": reserve}}})[:40] for reserve in (True, False)]
        print(json.dumps(seen))
        """,
        RAY_AUTH_MODE=None,
    )
    refused = "this process has a run on Ray already, in namespace 'roost'"[:40]
    assert seen == [
        "0 runs are on this Ray cluster: none (begin one with Cluster(num_nodes=...) first)",
        False,
        "there is no run in namespace 'nobodys' on this Ray cluster (runs are in: none)",
        False,
        None,
        "roost",
        "roost",
        refused,
        refused,
        refused,
    ]
    assert OPEN not in said


INTERPRETERS = """
import json, os, sys, time
import ray, roost

class Told(roost.Worker):
    def told(self):
        return [os.environ.get("BY_THE_WRAPPER"), ray.get_runtime_context().get_node_id()]

def config(path):
    groups = [{"label": "all", "node_ranks": "0-1", "env_configs": [{"node_ranks": "1", "python_interpreter_path": path}]}]
    groups.append({"label": "arms", "node_ranks": 1, "hardware": {"type": "Franka", "configs": [{"node_rank": 1, "robot_ip": "10.0.0.9"}]}})
    return {"num_nodes": 2, "component_placement": {"a": {"node_group": "all", "placement": "0-3"}}, "node_groups": groups}

said = []
for path in sys.argv[1:3]:
    start = time.monotonic()
    try:
        roost.Cluster(cluster_cfg=config(path), engine="ray")
    except roost.EngineError as error:
        said.append([str(error), time.monotonic() - start < 60])
cluster = roost.Cluster(cluster_cfg=config(sys.argv[3]), engine="ray")
group = Told.create_group().launch(cluster, roost.PackedPlacementStrategy(0, 3, node_group="all"), name="told")
nodes = [[node.node_labels, node.node_ip, node.num_cpus > 0, node.num_accelerators, node.accelerator_type.value, [[unit.type, unit.count] for unit in node.hardware_resources], node.python_interpreter_path] for node in cluster.nodes]
robot = cluster.nodes[1].hardware_resources[-1].infos[0].config["robot_ip"]
own = [node.ray_id for node in cluster.nodes] == [answer[1] for answer in group.told().wait()][::2]
print(json.dumps([said, [answer[0] for answer in group.told().wait()], nodes, robot, own]))
"""


def test_an_interpreter_that_a_node_does_not_have_is_said_before_anything_runs(two: RayCluster) -> None:
    """And one that is there runs the workers of its node. Nodes tell all that they have."""
    wrapper, plain = two.folder / "wrapper", two.folder / "plain"
    wrapper.write_text(f'#!/bin/sh\nBY_THE_WRAPPER=yes exec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    plain.write_text("#!/bin/sh\n")
    (two.folder / "told.py").write_text(INTERPRETERS)
    done = subprocess.run(
        [sys.executable, "told.py", "/not/there/python", str(plain), str(wrapper)],
        env=two.driver(),
        cwd=two.folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
    assert done.returncode == 0, done.stderr
    said, told, nodes, robot, own = last_json(done.stdout, done.stderr)
    for path, (words, was_quick) in zip(("/not/there/python", plain), said, strict=True):
        assert (
            words
            == f"node 1 (127.0.0.3) has no interpreter '{path}' that can be executed, which node group 'all' names (install it there, or correct python_interpreter_path of 'all')"
        )
        assert was_quick
    assert told == [None, None, "yes", "yes"]
    gpus, arms = ["Accelerator", 2], ["Franka", 1]
    assert nodes == [
        [["all", "cluster", "node"], "127.0.0.2", True, 2, "NV_GPU", [gpus], sys.executable],
        [
            ["all", "arms", "cluster", "node"],
            "127.0.0.3",
            True,
            2,
            "NV_GPU",
            [gpus, arms],
            sys.executable,
        ],  # the one of Ray; node groups have others
    ]
    assert robot == "10.0.0.9" and own
