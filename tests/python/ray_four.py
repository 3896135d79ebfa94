"""What tests on the cluster of four nodes have in common: its workers, and how its drivers begin."""

import subprocess
import textwrap
from collections.abc import Iterator

from ray_cluster import RayCluster

# A module that drivers and workers import, as they would a user's.
MODULE = """
import asyncio, os, signal, sys, threading, time
import ray
from roost import CollectiveManager, DeviceLockManager, NodeManager, WorkerManager
from roost import Cluster, FlexiblePlacementStrategy, NodePlacementStrategy, PackedPlacementStrategy, Worker

class Together(Worker):
    def __init__(self):
        super().__init__()
        self.here, self.all = 0, asyncio.Event()
    async def meet(self, count):
        self.here += 1
        if self.here == count:
            self.all.set()
        await self.all.wait()
        return self._rank

class Writer(Worker):
    def __init__(self):
        super().__init__()
        print("started as", self._rank, flush=True)
    def write(self, count, word):
        for number in range(count):
            print(f"{word} {number}")
        print("not whole", end="", file=sys.stderr)

class Changer(Worker):
    def __init__(self):
        super().__init__()
        os.environ["LOCAL_RANK"] = "7"
    def rank(self): return os.environ["LOCAL_RANK"]

class Small(Worker):
    def __init__(self, base=0, failing=-1):
        super().__init__()
        self.base = base
        if self._rank == failing:
            raise ValueError("cannot be made")
    def add(self, number): return self.base + number + self._rank
    def folder(self): return os.getcwd()
    def pid(self): return os.getpid()
    def environment(self): return dict(os.environ)
    def node(self): return ray.get_runtime_context().get_node_id()
    def fail(self): raise KeyError("bad")
    def leave(self): raise SystemExit(3)
    def lock(self): return threading.Lock()
    def size(self, value): return len(value)
    def block(self): time.sleep(600)
    def die(self): os.kill(os.getpid(), signal.SIGKILL)
    def vanish(self): os._exit(3)
    def ask(self):
        info = WorkerManager.get_proxy().get_worker_info("askers:1")
        nodes = NodeManager.get_proxy()
        with self.device_lock:
            pass
        return [info.node_ip, info.cluster_node_rank, nodes.get_master_ip(), nodes.get_master_port(), [node.node_ip for node in nodes.get_nodes()], self.acquire_free_port() > 1023]
    def take(self):
        self.device_lock.acquire()
        return True
    def view(self):
        cluster = Cluster()
        return [[node.node_ip, node.num_accelerators] for node in cluster.nodes]

def asked(name, method):
    actor = ray.get_actor(name)  # kept: methods of older Rays do not keep it
    return ray.get(getattr(actor, method).remote())

def say(error):
    return [type(error).__name__, str(error).splitlines()[0]]
"""


def open_four() -> Iterator[RayCluster]:
    with RayCluster(nodes=4, gpus=8, shows_lines=True) as cluster:
        write_module(cluster)
        yield cluster


def write_module(cluster: RayCluster) -> None:
    (cluster.folder / "small.py").write_text(MODULE)
    cluster.environment["PYTHONPATH"] += f":{cluster.folder}"


def script(body: str) -> str:
    return "import json, ray, roost, time\nfrom small import *\n" + textwrap.dedent(body)


def wait_line(driver: subprocess.Popen[str], word: str) -> str:
    assert driver.stdout
    for line in driver.stdout:
        if line.startswith(word):
            return line
    raise AssertionError(f"the driver ended: {driver.stderr.read() if driver.stderr else ''}")
