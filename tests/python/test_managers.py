"""Managers between real processes: attaching, locks and their ends, nonsense at the socket, registry servers that go."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from engine import PATIENCE, ROOST, is_alive, wait_gone
from puppets import Failed, Puppet, Theatre
from roost import _roost
from roost._work import managers


@pytest.fixture
def theatre(tmp_path: Path) -> Iterator[Theatre]:
    it = Theatre(tmp_path)
    yield it
    it.close()


DEVICES = "roost.DeviceLockManager.get_proxy()"
WORKERS = "roost.WorkerManager.get_proxy()"
PORTS = "roost.PortLockManager.get_proxy()"
GROUPS = "roost.CollectiveManager.get_proxy()"
NODES = "roost.NodeManager.get_proxy()"


def refused(puppet: Puppet, code: str) -> tuple[str, str, str]:
    with pytest.raises(Failed) as caught:
        puppet.do(code)
    return caught.value.args  # type: ignore[return-value]


def ask(client: socket.socket, line: bytes) -> dict:
    client.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        more = client.recv(65536)
        assert more, "turned away"
        answer += more
    return json.loads(answer)


GET_IP = b'{"call": "NodeManager.get_master_ip", "args": []}'


# --- attaching ---

CONFIG = {
    "cluster": {
        "num_nodes": 2,
        "component_placement": {"actor": "0-3", "rollout": "all"},
        "node_groups": [
            {"label": "a800", "node_ranks": 0, "env_configs": [{"node_ranks": 0, "env_vars": [{"A": "1"}]}]},
            {
                "label": "arm",
                "node_ranks": "1",
                "hardware": {
                    "type": "Franka",
                    "configs": [{"node_rank": 1, "robot_ip": "10.0.0.9", "disable_validate": True}],
                },
            },
        ],
    }
}


def test_another_process_sees_the_same_cluster(theatre: Theatre) -> None:
    driver = theatre.driver(f"cluster='1x4 A800,1x2 A800', cluster_cfg={CONFIG!r}")
    other = theatre.puppet()
    shown = "repr((c.nodes, c.node_groups, c.num_accelerators))"
    driver.do(f"c = plan(cluster='1x4 A800,1x2 A800', cluster_cfg={CONFIG!r})")
    other.do("c = roost.Cluster()")
    assert other.do(shown) == driver.do(shown)
    assert "robot_ip" in other.do(shown) and "'A': '1'" in other.do(shown)
    assert other.do(f"{NODES}.get_nodes() == c.nodes and {NODES}.get_node_groups() == c.node_groups") is True
    assert other.do(f"{NODES}.get_cluster_config().component_placement") == "{'actor': '0-3', 'rollout': 'all'}"
    assert other.do(
        "roost.PackedPlacementStrategy(0, 1, node_group='a800').get_placement(c)[1].visible_accelerators"
    ) == ["1"]
    assert other.do(f"{NODES}.get_master_ip()") == "127.0.0.1"
    assert other.do(f"{NODES}.get_master_port()") == driver.do(f"{NODES}.get_master_port()") >= 1024
    name, words, code = refused(other, f"{NODES}.get_num_gpus_per_node()")
    assert name == "RankError" and "node 0 has 4, node 1 has 2" in words and code == "fit"


def test_a_cluster_of_a_file_and_one_without_a_config_attach_too(theatre: Theatre, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(
        "cluster:\n  num_nodes: 1\n  component_placement: {actor: 0-1}\n  node_groups: [{label: g, node_ranks: 0}]\n"
    )
    theatre.driver(f"cluster='1x2', cluster_cfg={str(tmp_path / 'train.yaml')!r}", "file")
    theatre.driver("cluster='3x8 AMD'", "plain")
    other = theatre.puppet()
    assert other.do("[group.label for group in roost.Cluster(namespace='file').node_groups]") == [
        "g",
        "cluster",
        "node",
    ]
    assert other.do(f"{NODES}.get_cluster_config().node_groups[0].label") == "g"
    assert (
        theatre.puppet(ROOST_NAMESPACE="plain").do("roost.Cluster().get_node_info(2).accelerator_type.value")
        == "AMD_GPU"
    )
    assert (
        theatre.puppet(ROOST_NAMESPACE="plain").do(f"{NODES}.get_num_gpus_per_node(), {NODES}.get_cluster_config()")
        == "(8, None)"
    )


def test_which_run_is_meant_must_be_clear(theatre: Theatre) -> None:
    other = theatre.puppet()
    for code in ("roost.Cluster()", f"{NODES}.get_nodes()"):
        assert refused(other, code)[:2] == (
            "EngineError",
            "no run of this user is alive (start one with Cluster(num_nodes=...), or name it with ROOST_NAMESPACE; one on Ray is found with engine='ray')",
        )
    theatre.driver()
    second = theatre.driver("cluster='1x1'")
    assert refused(other, "roost.Cluster()")[1].startswith(
        "2 runs of this user are alive: roost, roost_1 (name one of them"
    )
    assert other.do("roost.Cluster(namespace='roost_1').num_accelerators") == 1
    assert other.do(f"{NODES}.get_num_gpus_per_node()") == 1  # managers of the Cluster of this process
    assert second.do(f"{NODES}.get_num_gpus_per_node()") == 1
    name, words, code = refused(other, "roost.Cluster(namespace='roost_2')")
    assert (name, code) == ("EngineError", "engine")
    assert words == "no managers live in namespace 'roost_2' (living: roost, roost_1)"
    assert "cannot be a namespace" in refused(other, "roost.Cluster(namespace='a/b')")[1]
    assert "at most 48 of them" in refused(other, f"roost.Cluster(namespace={'x' * 49!r})")[1]


def test_a_namespace_belongs_to_one_living_run(theatre: Theatre) -> None:
    first = theatre.driver(namespace="mine")
    second = theatre.puppet()
    start = f"registry_server = start_registry_server(plan(cluster='1x1'), {{!r}}, program={str(ROOST)!r})"
    assert refused(second, start.format("mine"))[1].startswith(
        "the namespace 'mine' belongs to a living run of this user"
    )
    assert "cannot be a namespace" in refused(second, start.format("a:b"))[1]
    first.do("registry_server.close()")
    second.do(start.format("mine"))
    assert second.do(f"{NODES}.get_num_gpus_per_node()") == 1


def test_a_run_without_managers_says_so(theatre: Theatre) -> None:
    assert refused(theatre.puppet(ROOST_NAMESPACE="roost"), f"{WORKERS}")[1] == (
        "no managers live in namespace 'roost' (no run of this user has managers: start one with Cluster(num_nodes=...))"
    )


# --- owners and their ends ---


def test_what_a_killed_process_had_is_free(theatre: Theatre) -> None:
    driver, victim, other = theatre.driver(), theatre.puppet(), theatre.puppet()
    victim.do(f"{DEVICES}.acquire_devices('v:0', [0, (1, 1)])")
    assert victim.do(f"{PORTS}.acquire(0, 'v:0', 5000)") is True
    victim.do(f"{WORKERS}.register_worker('v:0', roost.WorkerInfo(roost.WorkerAddress('v', 0), 0))")
    victim.do(f"{GROUPS}.set_master_port_info('g', 7)")
    assert other.do(f"{PORTS}.acquire(0, 'o:0', 5000)") is False
    assert other.do(f"{WORKERS}.get_worker_info('v:0').rank") == 0
    other.tell(f"{DEVICES}.acquire_devices('o:0', [5, 0])")
    driver.do(f"{DEVICES}.acquire_devices('d:0', [3])")
    victim.kill()
    assert other.hear() is None
    assert other.do(f"{PORTS}.acquire(0, 'o:0', 5000)") is True
    assert other.do(f"[{WORKERS}.get_worker_info('v:0'), {GROUPS}.get_master_port_info('g')]") == [None, None]


def lock_line(call: str, name: str, devices: list[int]) -> bytes:
    return json.dumps({"call": f"DeviceLockManager.{call}_devices", "args": [name, devices]}).encode() + b"\n"


def test_locks_are_served_in_the_order_they_were_asked_for(theatre: Theatre) -> None:
    driver = theatre.driver()
    driver.do(f"{DEVICES}.acquire_devices('d:0', [0, 1])")
    waiting = [theatre.connect() for _ in range(4)]
    for rank, client in enumerate(waiting):
        # A connection is served in order: when the second request is answered the first one waits.
        client.sendall(lock_line("acquire", f"w:{rank}", [rank % 2, 2]))
        assert ask(client, GET_IP) == {"value": "127.0.0.1"}
    driver.do(f"{DEVICES}.release_devices('d:0', [0, 1])")
    for rank, client in enumerate(waiting):
        assert json.loads(client.recv(100)) == {"value": True}
        for later in waiting[rank + 1 :]:
            assert ask(later, GET_IP) == {"value": "127.0.0.1"}  # and no lock before it
        if rank % 2:
            client.close()
        else:
            assert ask(client, lock_line("release", f"w:{rank}", [rank % 2, 2])[:-1]) == {"value": None}


def test_releasing_what_is_anothers_is_an_error(theatre: Theatre) -> None:
    driver, other = theatre.driver(), theatre.puppet()
    driver.do(f"{DEVICES}.acquire_devices('d:0', [0])")
    name, words, code = refused(other, f"{DEVICES}.release_devices('d:0', [0])")
    assert (name, code) == ("EngineError", "access") and words.startswith("device 0 of node 0 is held by d:0")
    assert refused(other, f"{DEVICES}.acquire_devices('o:0', [8])")[0] == "RankError"
    assert "cannot be the name of a group" in refused(other, f"{DEVICES}.acquire_devices('a b:0', [8])")[1]
    assert refused(other, f"{DEVICES}.acquire_devices('o:0', ['0'])")[0] == "TypeError"


def test_a_wait_that_is_given_up_gets_nothing_later(theatre: Theatre) -> None:
    driver, other, third = theatre.driver(), theatre.puppet(), theatre.puppet()
    driver.do(f"{DEVICES}.acquire_devices('d:0', [0])")
    name, words, code = refused(other, f"{DEVICES}.acquire_devices('o:0', [0, 1], timeout=0.01)")
    assert (name, code) == ("Timeout", "timeout") and "is still taken by another" in words
    other.do("import _thread; timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)); timer.start()")
    assert refused(other, f"{DEVICES}.acquire_devices('o:0', [0, 1])")[0] == "KeyboardInterrupt"
    third.do(f"{DEVICES}.acquire_devices('t:0', [1])")
    driver.do(f"{DEVICES}.release_devices('d:0', [0])")
    third.do(f"{DEVICES}.acquire_devices('t:0', [0])")
    assert other.do(f"{WORKERS}.get_worker_info('t:0')") is None  # the connection is as good as before


# Raises in a process that waits, once what it waits for has been granted: the handler itself sees to that.
INTERRUPTS = """
import time
def interrupt_with(act):
    def handle(number, frame):
        act()
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
"""


def test_an_interrupted_wait_gives_back_what_was_granted_all_the_same(theatre: Theatre) -> None:
    driver, other, third = theatre.driver(), theatre.puppet(), theatre.puppet()
    namespace = driver.do("registry_server.namespace")
    other.do(INTERRUPTS)
    other.do(
        f"holder = managers.ServerTransport({namespace!r}); holder.call('DeviceLockManager.acquire_devices', ['h:0', [0]])"
    )
    other.do(f"{DEVICES}.acquire_devices('o:0', [1])")
    other.do(f"locks = {DEVICES}")
    interrupted = "interrupt_with(lambda: holder.call('DeviceLockManager.release_devices', ['h:0', [0]])); locks.acquire_devices('o:0', [0, 1])"
    assert refused(other, interrupted)[0] == "KeyboardInterrupt"
    third.do(f"{DEVICES}.acquire_devices('t:0', [0], timeout=30)")
    other.do(f"{DEVICES}.release_devices('o:0', [1])")  # what it had before is still its own


def test_an_interrupted_lock_of_a_port_is_given_back(theatre: Theatre) -> None:
    driver, other = theatre.driver(), theatre.puppet()
    registry_server = driver.do("registry_server.pid")
    other.do(INTERRUPTS)
    other.do(f"ports = {PORTS}; ports.release(0, 'o:0', 5000)")  # it is connected
    os.kill(registry_server, signal.SIGSTOP)
    assert (
        refused(
            other, f"interrupt_with(lambda: os.kill({registry_server}, signal.SIGCONT)); ports.acquire(0, 'o:0', 5000)"
        )[0]
        == "KeyboardInterrupt"
    )
    assert driver.do(f"{PORTS}.acquire(0, 'd:0', 5000)") is True


def test_threads_of_a_process_wait_for_each_other(theatre: Theatre) -> None:
    driver = theatre.driver()
    driver.do(
        "count = [0]\n"
        "def work(name):\n"
        "    locks = roost.DeviceLockManager.get_proxy()\n"
        "    for _ in range(100):\n"
        "        locks.acquire_devices(name, [0, 3])\n"
        "        seen = count[0]; roost.NodeManager.get_proxy().get_master_ip(); count[0] = seen + 1\n"
        "        locks.release_devices(name, [0, 3])\n"
        "threads = [threading.Thread(target=work, args=(f't:{i}',)) for i in range(8)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]"
    )
    assert driver.do("count") == [800]


def test_a_forked_process_is_an_owner_of_its_own(theatre: Theatre) -> None:
    driver, parent = theatre.driver(), theatre.puppet()
    parent.do(f"{DEVICES}.acquire_devices('p:0', [0])")
    # The child has a copy of the connection and lives on: its parent's locks end with the parent all the same.
    parent.do(
        "read, write = os.pipe()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        f"        {DEVICES}.release_devices('p:0', [0])\n"
        "        os.write(write, b'released')\n"
        "    except roost.EngineError:\n"
        f"        {DEVICES}.acquire_devices('c:0', [1])\n"
        "        os.write(write, b'own')\n"
        "    signal.pause()\n"
    )
    assert parent.do("os.read(read, 100).decode()") == "own"
    child = parent.do("child")
    driver.tell(f"{DEVICES}.acquire_devices('d:0', [0])")
    parent.kill()
    try:
        assert driver.hear() is None
        driver.tell(f"{DEVICES}.acquire_devices('d:0', [1])")
    finally:
        os.kill(child, signal.SIGKILL)
    assert driver.hear() is None


# --- at the socket ---


def is_turned_away(client: socket.socket) -> bool:
    try:
        return client.recv(65536) == b""
    except ConnectionResetError:
        return True


def test_nonsense_and_floods_harm_nobody_else(theatre: Theatre) -> None:
    driver = theatre.driver()
    assert theatre.path().stat().st_mode & 0o777 == 0o600
    fine = theatre.connect()
    for nonsense in (
        b"",
        b"{}",
        b"\x00\xff\xfe",
        b"[" * 1000,
        b'{"call": "' + b"x" * 100000 + b'", "args": []}',
        b"GET / HTTP/1.1",
    ):
        with theatre.connect() as client:
            assert "error" in ask(client, nonsense)
            assert ask(client, GET_IP) == {"value": "127.0.0.1"}
    with theatre.connect() as client:  # a line without an end
        client.settimeout(PATIENCE)
        try:
            for _ in range(64):
                client.sendall(b"x" * 65536)
        except OSError:
            pass
        assert is_turned_away(client)
    crowd = [theatre.connect() for _ in range(300)]
    for client in crowd:
        client.sendall(b'{"call": "NodeM')
    assert ask(fine, GET_IP) == {"value": "127.0.0.1"}
    for client in crowd:
        client.close()
    with theatre.connect() as client:  # asks and never listens: it is not read from any more
        client.setblocking(False)
        sent = 0
        try:
            while sent < 1 << 26:
                sent += client.send(GET_IP + b"\n")
        except BlockingIOError:
            pass
        assert 0 < sent < 1 << 26
        assert ask(fine, GET_IP) == {"value": "127.0.0.1"}
        status = Path(f"/proc/{driver.do('registry_server.pid')}/status").read_text()
        peak = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
        assert peak < 200_000  # kB, also under sanitizers
    assert driver.do(f"{NODES}.get_master_ip()") == "127.0.0.1"
    fine.close()


def test_many_requests_at_once_have_each_their_answer(theatre: Theatre) -> None:
    theatre.driver()
    with theatre.connect() as client:
        client.sendall(
            b"".join(b'{"id": %d, "call": "NodeManager.get_master_ip", "args": []}\n' % i for i in range(500))
        )
        with client.makefile("rb") as answers:
            assert [json.loads(answers.readline()) for _ in range(500)] == [
                {"id": i, "value": "127.0.0.1"} for i in range(500)
            ]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_another_user_is_turned_away() -> None:
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        theatre = Theatre(Path(folder))
        try:
            theatre.driver()
            code = (
                "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                "s = socket.socket(socket.AF_UNIX); s.settimeout(30)\n"
                "try:\n    s.connect(sys.argv[1]); s.sendall(b'{}\\n'); print(s.recv(100))\n"
                "except OSError as error:\n    print(type(error).__name__)"
            )
            run = [sys.executable, "-c", code, str(theatre.path())]
            assert subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE).stdout == "PermissionError\n"
            # Were the directories open to all, the kernel's word of who comes would still count.
            for path in (Path(folder), theatre.runtime, theatre.runtime / "roost"):
                path.chmod(0o755)
            theatre.path().chmod(0o666)
            said = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE).stdout
            assert said in ("b''\n", "ConnectionResetError\n", "BrokenPipeError\n")
            os.chown(theatre.runtime, nobody, nobody)
            os.chown(theatre.runtime / "roost", nobody, nobody)
            assert refused(theatre.puppet(), "roost.Cluster(namespace='roost')")[2] == "access"
        finally:
            theatre.close()


# --- registry servers that go ---


def test_a_registry_server_goes_with_its_driver(theatre: Theatre) -> None:
    driver, other = theatre.driver(), theatre.puppet()
    other.do("roost.Cluster()")
    other.do(WORKERS)
    other.tell(f"{DEVICES}.acquire_devices('o:0', [0]), {DEVICES}.acquire_devices('p:0', [0])")
    pid = driver.do("registry_server.pid")
    driver.kill()
    wait_gone([pid])
    assert not theatre.path().exists()
    with pytest.raises(Failed) as caught:
        other.hear()
    assert (
        caught.value.args[0] == "EngineError" and "the managers of namespace 'roost' are gone" in caught.value.args[1]
    )
    assert not list((theatre.runtime / "roost").glob("*.ports"))
    theatre.driver()  # the namespace is free again
    assert theatre.puppet().do(f"{NODES}.get_master_ip()") == "127.0.0.1"


def test_a_registry_server_ends_when_closed_though_a_child_has_a_copy_of_its_socket(theatre: Theatre) -> None:
    driver = theatre.driver()
    child = driver.do("os.fork() or (signal.pause(), os._exit(0))")
    pid = driver.do("registry_server.pid")
    driver.do("registry_server.close()")
    assert not is_alive(pid) and not theatre.path().exists()
    assert driver.do("registry_server.close()") is None
    os.kill(child, signal.SIGKILL)


def test_a_child_of_the_driver_does_not_end_the_registry_server(theatre: Theatre) -> None:
    driver = theatre.driver()
    driver.do("child = os.fork()\nif child == 0:\n    registry_server.close(); os._exit(0)\nos.waitpid(child, 0)")
    assert theatre.puppet().do(f"{NODES}.get_master_ip()") == "127.0.0.1"


def test_a_registry_server_that_was_killed_leaves_its_namespace(theatre: Theatre) -> None:
    driver = theatre.driver()
    os.kill(driver.do("registry_server.pid"), signal.SIGKILL)
    assert refused(driver, f"{NODES}.get_master_ip() and {NODES}.get_master_ip()")[0] == "EngineError"
    assert refused(theatre.puppet(), "roost.Cluster()")[1].startswith("no run of this user is alive")
    theatre.driver()
    assert theatre.puppet().do(f"{NODES}.get_master_ip()") == "127.0.0.1"


def test_signals_of_a_terminal_end_a_registry_server_cleanly(theatre: Theatre) -> None:
    driver = theatre.driver()
    pid = driver.do("registry_server.pid")
    os.kill(pid, signal.SIGTERM)
    wait_gone([pid])
    assert not theatre.path().exists()


def test_a_program_that_is_not_roost_is_said(theatre: Theatre) -> None:
    start = "start_registry_server(plan(cluster='1x1'), program={!r})"
    other = theatre.puppet()
    assert (
        "'/nowhere/roost' for the managers: No such file or directory (install the roost program"
        in refused(other, start.format("/nowhere/roost"))[1]
    )
    name, words, code = refused(other, start.format("/bin/true"))
    assert (name, code) == ("EngineError", "engine") and words.startswith("the managers' process ended before it began")
    assert "is too long" in refused(theatre.puppet(XDG_RUNTIME_DIR="/" + "x" * 5000), start.format("/bin/true"))[1]
    assert subprocess.run([ROOST, "--registry-server"], timeout=PATIENCE).returncode == 2


def test_managers_start_with_their_cluster_and_end_with_it(theatre: Theatre) -> None:
    driver, other = theatre.puppet(), theatre.puppet()
    driver.do("c = roost.Cluster(cluster='1x3', namespace='mine')")
    assert other.do("roost.Cluster().num_accelerators") == 3  # before the driver has asked or launched anything
    assert driver.do(f"{NODES}.get_num_gpus_per_node()") == 3
    assert driver.do("c.namespace") == "mine" and other.do("roost.Cluster().namespace") == "mine"
    driver.do("d = roost.Cluster(cluster='1x5')")
    assert driver.do(f"{NODES}.get_num_gpus_per_node()") == 3  # of the one that has managers
    assert driver.do("d.namespace") == "roost" and theatre.path().exists()
    driver.do("c = d = None")
    assert not theatre.path().exists() and not theatre.path("mine").exists()


def test_a_cluster_to_plan_against_needs_no_managers(theatre: Theatre) -> None:
    """What keeps them from starting is reported when they are needed, or when a namespace was asked for."""
    file = theatre.runtime / "file"
    file.touch()
    other = theatre.puppet(XDG_RUNTIME_DIR=str(file))
    assert other.do("c = roost.Cluster(cluster='1x3')") is None and other.do("c.num_accelerators") == 3
    assert str(file) in refused(other, "c.namespace")[1]
    assert str(file) in refused(other, "roost.Cluster(cluster='1x3', namespace='mine')")[1]
    worker = theatre.puppet(ROOST_NAMESPACE="mine")  # it belongs to a run already
    worker.do("c = roost.Cluster(cluster='1x3')")
    assert not theatre.runtime.joinpath("roost").exists()
    driver = theatre.puppet()
    driver.do("c = roost.Cluster(cluster='1x1'); c.namespace; d = roost.Cluster(cluster='1x2')")
    assert driver.do(f"{NODES}.get_num_gpus_per_node()") == 1  # the later one changes nothing for who asks already


def kill_registry_server(driver: Puppet) -> int:
    """That of its Cluster `c`; it is dead when this returns, and nobody has waited for it."""
    pid: int = driver.do("c._managers._server.pid")
    os.kill(pid, signal.SIGKILL)
    driver.do(f"os.waitid(os.P_PID, {pid}, os.WEXITED | os.WNOWAIT)")
    return pid


def test_managers_that_were_killed_are_started_again_by_the_next_launch(theatre: Theatre) -> None:
    driver, other = theatre.puppet(), theatre.puppet()
    driver.do(
        "import logging; said = []; logging.getLogger('roost').addFilter(lambda it: said.append(it.getMessage()))"
    )
    driver.do(
        "class W(roost.Worker):\n    def ask(self):\n        return roost.NodeManager.get_proxy().get_num_gpus_per_node()\n"
    )
    driver.do(
        "launch = lambda name: W.create_group().launch(c, name=name, placement_strategy=roost.PackedPlacementStrategy(0, 1))"
    )
    driver.do("c = roost.Cluster(cluster='1x2'); first = launch('first')")
    assert driver.do("first.ask().wait()") == [2, 2] and other.do("roost.Cluster().num_accelerators") == 2
    pid = kill_registry_server(driver)
    # A forked process is not the one to start others.
    child = "child = os.fork()\nif child == 0:\n    os._exit(0 if c.namespace == 'roost' and not said else 1)\nassert os.waitpid(child, 0)[1] == 0"
    driver.do(child)
    assert driver.do("said") == []
    driver.do("second = launch('second')")
    assert driver.do("said") == [
        "the managers of namespace 'roost' have ended and are started again: what was registered and locked there is lost"
    ]
    assert driver.do("[c.namespace, c._managers._server.pid != %d]" % pid) == ["roost", True]
    assert driver.do("second.ask().wait()") == [2, 2]
    assert (
        "the managers of namespace 'roost' are gone (they were killed, or" in refused(driver, "first.ask().wait()")[1]
    ), "what it had there is lost"
    assert driver.do("first.ask().wait()") == [2, 2], "workers of an earlier launch find the new ones"
    assert theatre.puppet().do("roost.Cluster().num_accelerators") == 2
    driver.do("first._close(), second._close()")
    assert not is_alive(pid)


def test_managers_that_were_killed_come_back_elsewhere_when_their_namespace_is_taken(theatre: Theatre) -> None:
    driver = theatre.puppet()
    driver.do("c = roost.Cluster(cluster='1x2')")
    assert driver.do("c.namespace") == "roost"
    kill_registry_server(driver)
    theatre.driver()
    assert driver.do("c.namespace") == "roost_1"
    assert driver.do(f"{NODES}.get_num_gpus_per_node()") == 2


def test_workers_of_a_group_reach_the_managers(theatre: Theatre) -> None:
    driver, other = theatre.puppet(), theatre.puppet()
    driver.do(
        "class W(roost.Worker):\n"
        "    def tell(self):\n"
        "        workers = roost.WorkerManager.get_proxy()\n"
        "        address = roost.WorkerAddress('w', self._rank)\n"
        "        workers.register_worker(address, roost.WorkerInfo(address, self._rank, node_port=100 + self._rank))\n"
        "        return roost.NodeManager.get_proxy().get_num_gpus_per_node(), roost.Cluster().num_nodes\n"
    )
    driver.do(
        "c = roost.Cluster(cluster='1x2'); g = W.create_group().launch(c, name='w', placement_strategy=roost.PackedPlacementStrategy(0, 1))"
    )
    assert driver.do("g.tell().wait()") == [[2, 1], [2, 1]]
    assert other.do(f"[{WORKERS}.get_worker_info(f'w:{{rank}}').node_port for rank in range(2)]") == [100, 101]
    assert driver.do("g._close()") is None
    assert other.do(f"[{WORKERS}.get_worker_info(f'w:{{rank}}') for rank in range(2)]") == [None, None]


def test_two_processes_have_no_groups_of_one_name(theatre: Theatre) -> None:
    first, second, third = theatre.puppet(), theatre.puppet(), theatre.puppet()
    for puppet in (first, second, third):
        puppet.do("class W(roost.Worker):\n    def pid(self):\n        return os.getpid()\n")
        puppet.do("c = roost.Cluster()" if puppet is not first else "c = roost.Cluster(cluster='1x4'); c.namespace")
        puppet.do(
            "launch = lambda: W.create_group().launch(c, name='m', placement_strategy=roost.PackedPlacementStrategy(0, 0))"
        )
    first.do("g = launch()")
    [pid] = first.do("g.pid().wait()")
    runs = sorted(theatre.runtime.parent.glob("state/roost/runs/*"))
    name, words, code = refused(second, "launch()")
    assert (name, code) == ("EngineError", "engine")
    assert (
        words
        == f"group 'm' is running already in namespace 'roost': process {first.pid} launched it (give this one another name, or close that one first)"
    )
    assert sorted(theatre.runtime.parent.glob("state/roost/runs/*")) == runs, "it is told before anything starts"
    assert second.do(f"{WORKERS}.get_worker_info('m:0') is not None") is True
    # A child that has a copy of the connection must not keep the name.
    first.do("child = os.fork() or signal.pause()")
    try:
        assert first.do("g._close()") is None
        second.do("g = launch()")
        assert second.do("g.pid().wait()") != [pid]
        second.kill()
        third.do("g = launch()")
        assert third.do("g._close()") is None
    finally:
        first.do("os.kill(child, signal.SIGKILL)")


def test_nothing_is_left_open_by_many_registry_servers(theatre: Theatre) -> None:
    driver = theatre.puppet()
    driver.do("fds = lambda: len(os.listdir('/proc/self/fd'))")
    once = f"k = start_registry_server(plan(cluster='1x1'), program={str(ROOST)!r}); {NODES}.get_master_ip(); k.close()"
    driver.do(once)
    before = driver.do("fds()")
    driver.do(f"for _ in range(20):\n    {once}")
    assert driver.do("fds()") == before


# --- records and other ways to the memory ---


def test_addresses_have_one_form() -> None:
    address = roost.WorkerAddress("actor", (3, 1))
    assert address == roost.WorkerAddress("actor", [3, 1]) == roost.WorkerAddress.from_text("actor:3:1")
    assert hash(address) == hash(roost.WorkerAddress("actor", [3, 1]))
    assert sorted(
        [address, roost.WorkerAddress("actor", 3), roost.WorkerAddress("a", 9), roost.WorkerAddress("actor", 10)]
    ) == [
        roost.WorkerAddress("a", 9),
        roost.WorkerAddress("actor", 3),
        address,
        roost.WorkerAddress("actor", 10),
    ]
    assert str(roost.WorkerAddress("actor")) == "actor" and roost.WorkerAddress("actor").rank == -1
    for bad in ("a:0", "", "a b"):
        with pytest.raises(roost.Error, match="cannot be the name of a group"):
            roost.WorkerAddress(bad, 0)
    with pytest.raises(roost.RankError):
        roost.WorkerAddress("a", -1)
    with pytest.raises(roost.Error, match="it has no parent"):
        roost.WorkerAddress("a").get_parent_address()


def test_records_go_as_json() -> None:
    info = roost.WorkerInfo(
        roost.WorkerAddress("a", 1),
        1,
        2,
        0,
        roost.AcceleratorType.NV_GPU.value,
        "A800",
        3,
        "10.0.0.1",
        5000,
        [0, 1],
        [{"type": "Franka"}],
    )
    group = roost.CollectiveGroupInfo("pair", [info])
    assert roost.WorkerInfo.from_json(json.loads(json.dumps(info.to_json()))) == info
    assert roost.CollectiveGroupInfo.from_json(json.loads(json.dumps(group.to_json()))) == group
    assert group.world_size == 1


def test_an_engine_can_bring_its_own_transport() -> None:
    registry = _roost.Registry('{"nodes": [{"num_accelerators": 2}], "master_ip": "10.1.1.1"}')
    managers.set_transport(managers.RegistryTransport(registry, 1))
    try:
        assert roost.NodeManager.get_proxy().get_master_ip() == "10.1.1.1"
        info = roost.WorkerInfo(roost.WorkerAddress("a", 0), 0)
        roost.WorkerManager.get_proxy().register_worker(info.address, info)
        assert roost.WorkerManager.get_proxy().get_worker_info("a:0") == info
        pair = roost.CollectiveGroupInfo("pair", [info])
        roost.CollectiveManager.get_proxy().register_collective_group(pair)
        assert roost.CollectiveManager.get_proxy().get_collective_group("pair") == pair
        with pytest.raises(ValueError, match="registered with other members"):
            roost.CollectiveManager.get_proxy().register_collective_group(roost.CollectiveGroupInfo("pair", []))
        locks = roost.DeviceLockManager.get_proxy()
        locks.acquire_devices("a:0", [0])
        with pytest.raises(roost.Timeout, match="nobody else can answer"):
            locks.acquire_devices("b:0", [0])
    finally:
        managers.set_transport(None)


def test_a_registry_tells_later_what_was_waited_for() -> None:
    registry = _roost.Registry()
    lock = b'{"id": 5, "call": "DeviceLockManager.acquire_devices", "args": ["a:0", [0]]}'
    assert registry.answer(1, lock) == b'{"id":5,"value":true}'
    assert registry.answer(2, lock) is None and registry.later() == []
    registry.owner_gone(1)
    assert registry.later() == [(2, b'{"id":5,"value":true}')] and registry.later() == []
    with pytest.raises(roost.Error, match="not a view of a cluster"):
        _roost.Registry("[]")
    with pytest.raises(TypeError):
        registry.answer("1", lock)  # type: ignore[arg-type]
