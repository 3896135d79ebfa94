"""R6: two hosts of a Ray cluster lose each other and meet again. Hosts are network namespaces with a cable between
them. Minutes, and root: only `make soak` has these tests."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_cluster import WAIT, RayCluster, last_json
from verdicts import LeftOver

pytestmark = pytest.mark.ray

PORT = 6391
ADDRESSES = ("10.231.7.1", "10.231.7.2")


def ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


class Hosts:
    """A head and a node, each in a network of its own."""

    def __init__(self) -> None:
        self.names = [f"roost-{os.getpid()}-{letter}" for letter in "ab"]
        self.cables = [f"rst{os.getpid()}{letter}"[:15] for letter in "ab"]
        self.plain = RayCluster(nodes=1)  # its folder and environment, not its nodes
        self.folder: Path = self.plain.folder
        self.environment = self.plain.environment | {
            "PYTHONPATH": f"{self.plain.environment['PYTHONPATH']}:{self.folder}",
            "RAY_ADDRESS": f"{ADDRESSES[0]}:{PORT}",
        }
        self.nodes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Hosts":
        try:
            for name in self.names:
                ip("netns", "add", name)
            ip(
                "link",
                "add",
                self.cables[0],
                "netns",
                self.names[0],
                "type",
                "veth",
                "peer",
                "name",
                self.cables[1],
                "netns",
                self.names[1],
            )
            for name, cable, address in zip(self.names, self.cables, ADDRESSES, strict=True):
                ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
                ip("-n", name, "link", "set", "lo", "up")
                ip("-n", name, "link", "set", cable, "up")
            self._start(
                0, "--head", f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={self.folder}/t"
            )  # which Ray lets everybody write to
            self._start(1, f"--address={ADDRESSES[0]}:{PORT}")
        except BaseException:
            self.close()
            raise
        return self

    def inside(self, host: int, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.names[host], *words]

    def _start(self, host: int, *words: str) -> None:
        ray = Path(sys.executable).with_name("ray")
        settings = (
            f"--node-ip-address={ADDRESSES[host]}",
            "--num-cpus=4",
            "--num-gpus=2",
            f"--object-store-memory={80 << 20}",
            "--block",
        )
        environment = {name: value for name, value in self.environment.items() if name != "RAY_ADDRESS"}
        log = open(self.folder / f"host{host}.log", "wb")
        node = subprocess.Popen(
            self.inside(host, str(ray), "start", *words, *settings),
            env=environment,
            stdout=log,
            stderr=log,
            cwd=self.folder,
        )
        log.close()
        self.nodes.append(node)
        deadline = time.monotonic() + WAIT
        while b"Ray runtime started" not in (self.folder / f"host{host}.log").read_bytes():
            assert node.poll() is None and time.monotonic() < deadline, (self.folder / f"host{host}.log").read_text()
            time.sleep(0.2)

    def cable(self, state: str) -> None:
        ip("-n", self.names[0], "link", "set", self.cables[0], state)

    def pids(self, host: int) -> list[int]:
        return [int(word) for word in ip("netns", "pids", self.names[host]).split()]

    def close(self) -> None:
        for host, name in enumerate(self.names):
            if subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout.find(name) < 0:
                continue
            for pid in self.pids(host):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            ip("netns", "del", name)
        for node in self.nodes:
            node.wait(timeout=WAIT)
        self.plain.close()

    def __exit__(self, *_: object) -> None:
        self.close()


# Who acts writes it down: one line a call, with rank and process.
MODULE = """
import os
from roost import Worker
class Actor(Worker):
    def act(self, number):
        with open(os.path.join(os.path.dirname(__file__), "acts"), "a") as file:
            file.write(f"{number} {self._rank} {os.getpid()}\\n")
        return number
    def pid(self):
        return os.getpid()
"""
DRIVER = """
import json, sys, roost
from acting import Actor
cluster = roost.Cluster(num_nodes=2, engine="ray")
group = Actor.create_group().launch(cluster, roost.NodePlacementStrategy([0, 1]), name="actors")
def say(*words):
    print(json.dumps(words), flush=True)
def call(number):
    try:
        return ["values", group.act(number).wait()]
    except roost.WorkerError as error:
        return [outcome.kind for outcome in error.outcomes]
say("ready", group.pid().wait())
for line in sys.stdin:
    say(*call(int(line)))
"""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with Hosts() as made:
        (made.folder / "acting.py").write_text(MODULE)
        yield made


def partitions(hosts: Hosts) -> None:
    """Five seconds apart: every call has its one answer. Apart until Ray gives the node up: its rank is lost, its old
    life ends when the hosts meet again, and nothing of it acts or answers any more."""
    driver = subprocess.Popen(
        hosts.inside(0, sys.executable, "-c", textwrap.dedent(DRIVER)),
        env=hosts.environment,
        cwd=hosts.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def ask(number: int) -> None:
        assert driver.stdin
        driver.stdin.write(f"{number}\n")
        driver.stdin.flush()

    def hear() -> list[object]:
        assert driver.stdout
        for line in driver.stdout:
            if line.startswith("["):
                return list(last_json(line))
        raise AssertionError(driver.stderr.read() if driver.stderr else "")

    try:
        [ready, pids] = hear()
        assert ready == "ready" and isinstance(pids, list)
        ask(1)
        assert hear() == ["values", [1, 1]]
        hosts.cable("down")
        ask(2)
        time.sleep(5)  # what is tested is a length of time
        hosts.cable("up")
        assert hear() == ["values", [2, 2]]
        hosts.cable("down")
        ask(3)
        assert hear() == ["value", "unknown"]
        hosts.cable("up")
        deadline = time.monotonic() + WAIT
        while pids[1] in hosts.pids(1):
            assert time.monotonic() < deadline, LeftOver(["the old life of rank 1"])
            time.sleep(0.2)
        ask(4)
        assert hear() == ["value", "not_run"]
    finally:
        driver.kill()
        driver.communicate()
    acts = [tuple(map(int, line.split())) for line in (hosts.folder / "acts").read_text().splitlines()]
    assert len(set(acts)) == len(acts), "a call was run twice"
    assert {(rank, pid) for _, rank, pid in acts} == {(0, pids[0]), (1, pids[1])}
    assert {(number, rank) for number, rank, _ in acts} - {(3, 1)} == {(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (4, 0)}


if os.environ.get("ROOST_SOAK") == "1":

    def test_hosts_that_lose_each_other_and_meet_again(hosts: Hosts) -> None:
        partitions(hosts)
