"""The Ray engine on four nodes with eight accelerators each: nodes, workers, calls, failures.

One cluster serves all tests; each test is a driver of its own, or two."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from ray_cluster import WAIT, RayCluster, Session, last_json
from test_worker_seeds import SEEDS, TORCH, with_our_import

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def four() -> Iterator[RayCluster]:
    with RayCluster(nodes=4, gpus=8) as cluster:
        yield cluster


# What the drivers below have in common: workers that importing processes can find too.
MODULE = '''
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
        print("born as", self._rank, flush=True)
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

def say(error):
    return [type(error).__name__, str(error).splitlines()[0]]
'''


@pytest.fixture(scope="module", autouse=True)
def workers(four: RayCluster) -> None:
    """A module that drivers and workers import, as they would a user's."""
    (four.folder / "small.py").write_text(MODULE)
    four.environment["PYTHONPATH"] += f":{four.folder}"


def script(body: str) -> str:
    return "import json, ray, roost, time\nfrom small import *\n" + textwrap.dedent(body)


def test_a_cluster_is_seen_in_node_order_and_by_whoever_attaches(four: RayCluster) -> None:
    seen = four.drive(
        script("""
        import subprocess, sys
        cluster = Cluster(num_nodes=4, engine="ray")
        engine = cluster._engine_link()
        group = Small.create_group().launch(cluster, NodePlacementStrategy([1, 3]), name="lookers")
        held = lambda: ray.get(ray.get_actor("NodeManager").holds.remote())[0]
        mine = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [17]]), name="mine")
        before = held()
        attach = "from small import *; c = Cluster(engine='ray'); e = c._engine_link(); print([n.node_ip for n in c.nodes], e.namespace, e.run_id, e.master_port);"
        attach += "g = Small.create_group().launch(c, FlexiblePlacementStrategy([[17], [18]]), name='theirs'); print(g.add(1).wait(), ray.get(ray.get_actor('NodeManager').holds.remote())[0] == json.loads(sys.argv[1]))"
        more = {node: numbers + [2] if numbers == [1] else numbers for node, numbers in before.items()}
        other = subprocess.run([sys.executable, "-c", "import json, sys; " + attach, json.dumps(more)], capture_output=True, text=True)
        deadline = time.monotonic() + 30
        while held() != before and time.monotonic() < deadline:
            time.sleep(0.05)
        try:
            refused = ""
            Cluster(num_nodes=2, engine="ray")
        except roost.EngineError as error:
            refused = str(error)
        head = next(node["NodeID"] for node in ray.nodes() if "node:__internal_head__" in node["Resources"])
        print(json.dumps({
            "nodes": [[node.node_rank, node.node_ip, node.num_accelerators, node.accelerator_type.value, node.num_cpus] for node in cluster.nodes],
            "head_first": cluster.get_node_info(0).ray_id == head,
            "interpreter": cluster.get_node_info(2).python_interpreter_path,
            "home": cluster.get_node_info(2).default_env_vars["HOME"],
            "groups": [group.label for group in cluster.node_groups],
            "workers": group.view().wait(),
            "ran_on": [node == cluster.get_node_info(rank).ray_id for rank, node in zip([1, 3], group.node().wait())],
            "other": other.stdout + other.stderr,
            "mine": f"{[node.node_ip for node in cluster.nodes]} {engine.namespace} {engine.run_id} {engine.master_port}\\n[1, 2] True",
            "held": held() == before,
            "master": [engine.master_address, engine.master_port],
            "again": [Cluster().num_nodes, Cluster(num_nodes=4, engine="ray").namespace == engine.namespace],
            "refused": refused,
        }))
        """)
    )
    addresses = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"]
    assert seen["nodes"] == [[rank, address, 8, "NV_GPU", 8] for rank, address in enumerate(addresses)]
    assert seen["head_first"] and seen["ran_on"] == [True, True]
    assert seen["interpreter"].endswith("python") and seen["home"] == four.environment["HOME"]
    assert seen["groups"] == ["cluster", "node"]
    assert seen["workers"] == [[[address, 8] for address in addresses]] * 2
    assert seen["other"].strip() == seen["mine"] and seen["held"]
    assert seen["master"][0] == "127.0.0.2" and 20000 <= seen["master"][1] < 32768
    assert seen["again"] == [4, True]
    assert seen["refused"].startswith("this process has a run on Ray already, in namespace 'roost', for a Cluster with other arguments")
    assert four.left() == [[], [], 0] and four.kept() == []


RUN_DEPENDENT = {"ROOST_RUN_ID", "ROOST_NAMESPACE", "CLUSTER_NAMESPACE", "MASTER_ADDR", "MASTER_PORT"}


def test_variables_and_calls_are_those_of_the_local_engine(four: RayCluster) -> None:
    """The same placements on both engines, one after the other, in one driver; and nothing is reserved where the config says so."""
    seen = four.drive(
        script("""
        from ray.util.placement_group import placement_group_table
        from roost import _roost
        config = {"roost": {"ray": {"reserve": False}}, "cluster": {"num_nodes": 4, "component_placement": {"actor": "6-9"},
                  "node_groups": [{"label": "far", "node_ranks": "1-3", "env_configs": [{"node_ranks": "1-3", "env_vars": [{"FAR": "yes"}, {"PATH": "/far/bin"}]}]}]}}
        def look(cluster):
            shared = Small.create_group(1).launch(cluster, PackedPlacementStrategy(6, 9, 2), name="shared", isolate_gpu=False)
            group = Small.create_group(10).launch(cluster, PackedPlacementStrategy(6, 9), name="actor")
            far = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0, 1], [9]], "far"), name="far")
            found = [group.environment().wait(), shared.environment().wait(), far.environment().wait()]
            answers = [group.add(1).wait(), group.execute_on(2, 0).add(5).wait()]
            errors = []
            for method in ("fail", "leave", "lock"):
                try:
                    group.execute_on(1)
                    getattr(group, method)().wait()
                except roost.WorkerError as error:
                    errors.append([str(error).splitlines()[0], error.rank, error.node_rank, list(error.accelerators), [outcome.kind for outcome in error.outcomes], error.traceback.strip().splitlines()[-1]])
            reserved = [ray.available_resources()["GPU"], [entry for entry in placement_group_table().values() if entry["state"] != "REMOVED"]] if ray.is_initialized() else None
            for one in (group, shared, far):
                one._close()
            return found, answers, errors, reserved
        local = look(Cluster(cluster_cfg=config, cluster="4x8"))
        remote = look(Cluster(cluster_cfg=config, engine="ray"))
        print(json.dumps([local, remote]))
        """)
    )
    (local, local_answers, local_errors, _), (remote, answers, errors, reserved) = seen
    names = {name for group in local for rank in group for name in rank if name.startswith("ROOST_")} | {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK", "GROUP_NAME", "WORKER_NAME", "CLUSTER_NODE_RANK", "NODE_LOCAL_RANK",
        "NODE_LOCAL_WORLD_SIZE", "LOCAL_ACCELERATOR_RANK", "VISIBLE_DEVICES", "LOCAL_HARDWARE_RANKS", "NODE_GROUP_LABEL", "ACCELERATOR_TYPE", "ACCELERATOR_MODEL",
        "ISOLATE_ACCELERATOR", "CATCH_SYSTEM_FAILURE", "RAY_ACTOR", "CUDA_VISIBLE_DEVICES", "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "NCCL_CUMEM_ENABLE",
        "EGL_DEVICE_ID", "MUJOCO_EGL_DEVICE_ID", "FAR",
    }  # fmt: skip
    ours = {"ROOST_CHANNEL", "ROOST"}  # of the local engine's own channel, and of this test
    for one, other in zip(local, remote, strict=True):
        for rank, (here, there) in enumerate(zip(one, other, strict=True)):
            for name in sorted(names - RUN_DEPENDENT - ours):
                assert here.get(name) == there.get(name), (rank, name)
            assert all(there.get(name) for name in RUN_DEPENDENT), there
    assert [rank["CUDA_VISIBLE_DEVICES"] for rank in remote[0]] == ["6", "7", "0", "1"]
    assert [rank["MASTER_ADDR"] for rank in remote[0]] == ["127.0.0.2"] * 4 and {rank["MASTER_ADDR"] for rank in remote[2]} == {"127.0.0.3"}
    assert not any("OMP_NUM_THREADS" in rank for group in remote for rank in group)  # Ray sets it for its own
    assert remote[2][0]["FAR"] == "yes" and remote[2][0]["PATH"].startswith("/far/bin:") and "FAR" not in remote[0][0]
    assert answers == local_answers == [[11, 12, 13, 14], [17, 15]]
    assert errors == local_errors
    assert reserved == [32, []]


class TestInOneDriver:
    """What needs no driver of its own."""

    @pytest.fixture(scope="class")
    @classmethod
    def one(cls, four: RayCluster) -> Iterator[Session]:
        session = Session(four)
        yield session
        session.close()

    def test_a_constructor_that_fails_raises_from_launch_and_leaves_nothing(self, one: Session) -> None:
        seen = one.drive(
            script("""
            cluster = Cluster(num_nodes=4, engine="ray")
            found = []
            try:
                Small.create_group(failing=1).launch(cluster, PackedPlacementStrategy(6, 9), name="actor")
            except roost.WorkerError as error:
                found += [say(error), error.rank, error.node_rank, error.accelerators, repr(error.__cause__), "in __init__" in error.traceback]
            found.append([ray.util.list_named_actors(), ray.get(ray.get_actor("NodeManager").holds.remote())[0]])
            group = Small.create_group(5).launch(cluster, PackedPlacementStrategy(8, 8), name="actor")
            found.append(group.add(1).wait())
            try:
                cluster._engine_link().launch(__import__("roost._engine")._engine.LaunchRequest(Small, (), {}, "actor", PackedPlacementStrategy(0, 0).get_placement(cluster)))
            except roost.EngineError as error:
                found += [say(error), error.code]
            group._close()
            group = Small.create_group(6).launch(cluster, PackedPlacementStrategy(8, 8), name="actor")
            found.append(group.add(1).wait())
            print(json.dumps(found))
            """)
        )
        assert seen[0] == ["WorkerError", "rank 1 of group 'actor' (node 0, accelerators 7) failed to start: ValueError: cannot be made"]
        assert seen[1:6] == [1, 0, ["7"], "ValueError('cannot be made')", True]
        assert [sorted(seen[6][0]), seen[6][1]] == [["CollectiveManager", "NodeManager", "WorkerManager"], {}]
        assert seen[7] == [6]
        assert seen[8] == ["EngineError", "a worker named 'actor:0' is in namespace 'roost' already (launch it under another name, or close the group that has it)"]
        assert seen[9] == "name"
        assert seen[10] == [7]

    def test_a_rank_that_dies_is_told_with_its_node_and_takes_no_other_with_it(self, one: Session) -> None:
        """R1, and R15: values that are large or cannot be sent fail on their own call only."""
        seen = one.drive(
            script("""
            cluster = Cluster(num_nodes=4, engine="ray")
            group = Small.create_group().launch(cluster, PackedPlacementStrategy(6, 9), name="actor")
            pids = group.pid().wait()
            blocked = group.execute_on(3).block()
            found = [group.execute_on(0, 1, 2).size(b"x" * 3_000_000).wait()]
            os.kill(pids[3], signal.SIGKILL)
            for call in (lambda: blocked, lambda: group.add(1), lambda: group.execute_on(3).add(1), lambda: group.execute_on(2).vanish(), lambda: group.execute_on(2).add(1)):
                try:
                    call().wait()
                except roost.WorkerError as error:
                    found.append([str(error).splitlines()[0], error.rank, error.node_rank, [[outcome.rank, outcome.kind] for outcome in error.outcomes]])
            found.append(group.execute_on(0, 1).add(1).wait())
            os.kill(pids[1], signal.SIGKILL)
            again = roost._ray_open.current.find_group("actor")
            while {"actor:1", "actor:2"} & set(ray.util.list_named_actors()):
                time.sleep(0.05)
            again = roost._ray_open.current.find_group("actor")
            found.append([again.world_size, [rank.end is None for rank in again._ranks], [rank.node for rank in again._ranks]])
            print(json.dumps(found))
            """)
        )
        assert seen[0] == [3_000_000] * 3
        ends = [[[3, "unknown"]], [[0, "value"], [1, "value"], [2, "value"], [3, "not_run"]], [[3, "not_run"]], [[2, "unknown"]], [[2, "not_run"]]]
        for told, kinds in zip(seen[1:6], ends, strict=True):
            rank = kinds[-1][0]
            place, _, cause = told[0].partition(": the worker on node 1 (127.0.0.3) has ended: ")
            assert place.startswith(f"rank {rank} of group 'actor' (node 1, accelerators {rank - 2}) failed") and re.search("process .*died|exit", cause), told
            assert told[1:] == [rank, 1, kinds]
        assert seen[6:] == [[1, 2], [4, [True, False, False, False], ["node 0 (127.0.0.2)", *["its node"] * 3]]]

    def test_workers_ask_the_managers_and_locks_end_with_their_holder(self, one: Session) -> None:
        """The registry behind the actors is the local engine's."""
        seen = one.drive(
            script("""
            cluster = Cluster(num_nodes=4, engine="ray")
            engine = cluster._engine_link()
            group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [9]]), name="askers")
            other = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[9]]), name="others")
            together = Together.create_group().launch(cluster, NodePlacementStrategy([0]), name="together")
            found = [group.ask().wait(), engine.master_port, WorkerManager.get_proxy().get_worker_info("nobody:0")]
            group.execute_on(1).take().wait()
            waiting = other.take()
            try:
                waiting.wait(2)
            except roost.Timeout:
                found.append("waits")
            os.kill(group.pid().wait()[1], signal.SIGKILL)
            found.append(waiting.wait(60))
            found.append([handle.wait(60) for handle in [together.meet(20) for _ in range(20)]] == [[0]] * 20)
            CollectiveManager.get_proxy().set_master_port_info("x", 1)
            found.append(CollectiveManager.get_proxy().get_master_port_info("x"))
            print(json.dumps(found))
            """)
        )
        told, port, nobody, waits, had, met, info = seen
        assert told == [["127.0.0.3", 1, "127.0.0.2", port, ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"], True]] * 2
        assert (nobody, waits, had, met, info) == (None, "waits", [True], True, 1)

    def test_names_are_free_again_after_each_end(self, one: Session) -> None:
        """R7: made, closed and made again under one name."""
        count = 1000 if os.environ.get("ROOST_SOAK") == "1" else 4
        seen = one.drive(
            script(f"""
            cluster = Cluster(num_nodes=4, engine="ray")
            found = []
            for number in range({count}):
                group = Small.create_group(number).launch(cluster, FlexiblePlacementStrategy([[3]]), name="again")
                found.append(group.add(0).wait()[0])
                group._close()
            leased = sum(len(owners) for owners in cluster._engine_link()._ports._leased.values())
            print(json.dumps([found, leased]))
            """)
        )
        assert seen == [list(range(count)), 1]  # the run's own port

    def test_output_of_all_nodes_is_kept_from_its_first_line_and_shown_unless_it_is_not_wanted(self, four: RayCluster, one: Session) -> None:
        run_id, printed = one.drive(
            script(f"""
            import sys
            cluster = Cluster(num_nodes=4, engine="ray", distributed_log_dir={str(four.folder / "logs")!r})
            for name, is_hidden in (("shown", False), ("hidden", True)):
                group = Writer.create_group().launch(cluster, NodePlacementStrategy([1, 3]), name=name, disable_distributed_log=is_hidden)
                group.write(3000, name).wait()
                group._close()
            print(json.dumps([cluster._engine_link().run_id, sys.stdout.getvalue()]))
            """)
        )
        for name in ("shown", "hidden"):
            for rank in range(2):
                folder = four.folder / "logs" / run_id / name / str(rank)
                kept = (folder / "stdout.log").read_text().splitlines()
                assert [line for line in kept if line.startswith(("born", name))] == [f"born as {rank}", *(f"{name} {number}" for number in range(3000))]
                assert (folder / "stderr.log").read_text().splitlines()[-1] == "not whole"
                assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "stdout.log").stat().st_mode & 0o777 == 0o600
        assert "shown 0\n" in printed and "hidden" not in printed and "roost-mark" not in printed

    def test_what_is_not_as_planned_is_said_loudly(self, one: Session) -> None:
        """A worker whose environment was changed on its way is not started; what its own constructor changes is its own."""
        seen = one.drive(
            script("""
            import roost._ray as engine
            cluster = Cluster(num_nodes=4, engine="ray")
            plan = engine.RayEngine._options
            def wrong(self, name, node_rank, variables, *rest):
                return plan(self, name, node_rank, dict(variables) | {"CUDA_VISIBLE_DEVICES": "0"}, *rest)
            engine.RayEngine._options = wrong
            try:
                Small.create_group().launch(cluster, FlexiblePlacementStrategy([[3]]), name="changed")
            except roost.EngineError as error:
                said = [str(error), [name for name in ray.util.list_named_actors() if name.startswith("changed")]]
            finally:
                engine.RayEngine._options = plan
            print(json.dumps([*said, Changer.create_group().launch(cluster, FlexiblePlacementStrategy([[3]]), name="changer").rank().wait()]))
            """)
        )
        assert seen[0].startswith("rank 0 of 'changed' is not as planned: CUDA_VISIBLE_DEVICES is '0' and not '3'") and seen[1:] == [[], ["7"]]

    def test_managers_that_are_killed_are_there_again_and_have_forgotten_nothing(self, one: Session) -> None:
        """R3, one, two or all at a time, during a thousand calls to workers and to managers: Ray makes them again, with what
        the run is and what was registered, locked, held and leased."""
        seen = one.drive(
            script("""
            import random
            cluster = Cluster(num_nodes=4, engine="ray")
            engine = cluster._engine_link()
            group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [9]]), name="actor")
            other = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[9]]), name="others")
            group.execute_on(1).take().wait()
            waiting = other.take()
            nodes = ray.get_actor("NodeManager")
            ports, held, found, done = engine._ports.lease(0, (1, 2), 'test'), ray.get(nodes.holds.remote()), [], 0
            def kill_some():
                names = ["WorkerManager", "NodeManager", "CollectiveManager"]
                for turn, killed in enumerate(([0], [1], [2], [0, 1], [1, 2], [0, 1, 2])):
                    while done < 150 * turn + random.randrange(100):
                        time.sleep(0.001)
                    managers = [ray.get_actor(names[index]) for index in killed]
                    before = ray.get([manager.epoch.remote() for manager in managers])
                    for run, epoch, pid in before:
                        os.kill(pid, signal.SIGKILL)
                    again, deadline = [], time.monotonic() + 60
                    while not again and time.monotonic() < deadline:
                        try:
                            again = ray.get([manager.epoch.remote() for manager in managers], timeout=10)
                        except ray.exceptions.RayError:
                            time.sleep(0.1)
                    found.append([[after[0] == run, after[1] - epoch, after[2] != pid] for (run, epoch, pid), after in zip(before, again)])
            killer = threading.Thread(target=kill_some)
            killer.start()
            meetings, locks, calls = CollectiveManager.get_proxy(), DeviceLockManager.get_proxy(), []
            while done < 1000 or killer.is_alive():
                calls.append(group.add(done).wait() == [done, done + 1])
                meetings.set_master_port_info(f"meeting{done}", done)
                locks.acquire_devices(f"driver:{done}", [5])
                locks.release_devices(f"driver:{done}", [5])
                done += 1
            killer.join()
            kept = [meetings.get_master_port_info(f"meeting{number}") for number in range(done)]
            found.append([all(calls), kept == list(range(done))])
            try:
                waiting.wait(2)
            except roost.Timeout:
                found.append("waits")
            found += [WorkerManager.get_proxy().get_worker_info("actor:1").rank, ray.get(nodes.holds.remote()) == held]
            os.kill(group.pid().wait()[1], signal.SIGKILL)
            found.append(waiting.wait(60))
            ray.kill(engine._ports.keepers[0])
            first, block = engine._ports.lease(0, (1, 2), 'test')
            found.append({first, block, block + 1} & {ports[0], ports[1], ports[1] + 1, engine.master_port} == set())
            found.append(group.execute_on(0).view().wait()[0][3][0])
            print(json.dumps(found))
            """)
        )
        once = [True, 1, True]
        assert seen == [[once], [once], [once], [once] * 2, [once] * 2, [once] * 3, [True, True], "waits", 1, True, [True], True, "127.0.0.5"]

    def test_a_killed_process_that_attached_leaves_neither_locks_nor_devices(self, one: Session) -> None:
        """But devices that others of the run use too stay the run's, in Ray's books as well. And a lock that did not come in
        time is not held when it comes free."""
        seen = one.drive(
            script("""
            import subprocess, sys
            cluster = Cluster(num_nodes=4, engine="ray")
            cluster.namespace
            group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0]]), name="mine")
            held = lambda: sum(map(len, ray.get(ray.get_actor("NodeManager").holds.remote())[0].values()))
            before = held()
            theirs = "from small import *; c = Cluster(engine='ray'); g = Small.create_group().launch(c, FlexiblePlacementStrategy([[20], [21]]), name='theirs');"
            theirs += "DeviceLockManager.get_proxy().acquire_devices('x:0', [3]); print('ready', flush=True); input()"
            process = subprocess.Popen([sys.executable, "-c", theirs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert any(line == "ready\\n" for line in process.stdout)
            found, locks = [held() - before], DeviceLockManager.get_proxy()
            shared = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[20]]), name="shared")
            try:
                locks.acquire_devices("mine:0", [3], timeout=1)
            except roost.Timeout as error:
                found.append(str(error))
            process.kill()
            process.wait()
            locks.acquire_devices("mine:1", [3], timeout=60)
            locks.release_devices("mine:1", [3])
            deadline = time.monotonic() + 60
            while (held() != before + 1 or ray.available_resources()["GPU"] != 32 - held()) and time.monotonic() < deadline:
                time.sleep(0.05)
            found += [held() - before, "theirs:0" in ray.util.list_named_actors(), ray.available_resources()["GPU"] == 32 - held()]
            print(json.dumps(found))
            """)
        )
        assert seen == [2, "DeviceLockManager.acquire_devices was not answered after 1 seconds", 1, False, True]


def wait_line(driver: subprocess.Popen[str], word: str) -> str:
    assert driver.stdout
    for line in driver.stdout:
        if line.startswith(word):
            return line
    raise AssertionError(f"the driver ended: {driver.stderr.read() if driver.stderr else ''}")


def test_nothing_is_left_of_a_driver_that_is_killed_and_others_see_its_devices(four: RayCluster) -> None:
    """R2, R7, and two drivers on one Ray that begin at the same moment: each has a namespace of its own, and the second to
    launch is told of a clash. One that does not reserve is only warned."""
    first = four.start(
        script("""
        cluster = Cluster(num_nodes=4, engine="ray")
        group = Small.create_group().launch(cluster, PackedPlacementStrategy(6, 9), name="actor")
        group.block()
        print("ready", cluster._engine_link().run_id, cluster._engine_link().namespace, flush=True)
        input()
        """)
    )
    second = four.start(
        script("""
        cluster = Cluster(num_nodes=4, engine="ray")
        found = [cluster._engine_link().namespace]
        print("ready", flush=True)
        input()
        for strategy in (FlexiblePlacementStrategy([[5, 6], [9]]), FlexiblePlacementStrategy([[10]])):
            try:
                group = Small.create_group().launch(cluster, strategy, name="actor")
                found.append(group.add(1).wait())
            except roost.EngineError as error:
                found.append(str(error))
        import logging
        logging.getLogger("roost").addFilter(lambda record: found.append(record.getMessage()) or True)
        cluster._engine_link()._reserved()._is_reserving = False
        found.append(Small.create_group().launch(cluster, FlexiblePlacementStrategy([[9]]), name="sharing").add(1).wait())
        print(json.dumps(found))
        """)
    )
    try:
        _, run, namespace = wait_line(first, "ready").split()
        wait_line(second, "ready")
        out, err = second.communicate("\n", timeout=WAIT)
        clash = last_json(out, err)
    finally:
        for driver in (first, second):
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.communicate(timeout=WAIT)
    assert {clash[0], namespace} == {"roost", "roost_1"}
    assert f"accelerators are in use by run {run} of " in clash[1] and f"in namespace '{namespace}' (node 0 (127.0.0.2): 6; node 1 (127.0.0.3): 1)" in clash[1]
    assert clash[2] == [1]
    assert clash[3].startswith(f"accelerators are in use by run {run} of ") and clash[3].endswith("(node 1 (127.0.0.3): 1); they are shared, as roost.ray.reserve is false")
    assert clash[4:] == [[1]]
    assert four.left() == [[], [], 0] and four.kept() != []  # nobody was there to tidy up; the next run is


def test_devices_are_reserved_once_and_what_others_hold_is_waited_for_within_a_bound(four: RayCluster) -> None:
    """R8, R9: one placement group for all that the config places; a full node is said with its numbers."""
    seen = four.drive(
        script("""
        from ray.util.placement_group import placement_group_table, remove_placement_group, placement_group
        from roost._errors import Timeout
        config = {"cluster": {"num_nodes": 4, "component_placement": {"actor,rollout": "0-15", "critic": "16-19"}}}
        cluster = Cluster(cluster_cfg=config, engine="ray")
        placement = roost.ComponentPlacement(config, cluster)
        groups = [Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [8]]), name=name) for name in ("actor", "rollout")]
        found = [[entry["bundles"] for entry in placement_group_table().values() if entry["state"] == "CREATED"], ray.available_resources()["GPU"]]
        other = placement_group([{"GPU": 5, "node:127.0.0.5": 0.001}])
        assert other.wait(60)
        import logging, roost._ray_reserve as reserve
        reserve.SAY_EVERY, said = 1.5, []
        logging.getLogger("roost").addFilter(lambda record: said.append(record.getMessage()) or True)
        start = time.monotonic()
        try:
            Small.create_group().launch(cluster, FlexiblePlacementStrategy([[24, 25, 26, 27]]), name="late", timeout=3)
        except Timeout as error:
            found.append(str(error))
        found.append(time.monotonic() - start < 50 and [words.partition(":")[0] for words in said])
        found.append([name for name in ray.util.list_named_actors() if name.startswith("late")])
        remove_placement_group(other)
        late = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[24, 25, 26, 27]]), name="late")
        found.append(late.add(0).wait())
        for group in placement_group_table().values():
            if group["state"] == "CREATED" and group["name"].startswith("roost-") and list(group["bundles"].values()) == [{"GPU": 4.0}]:
                remove_placement_group(ray.util.get_placement_group(group["name"]))
        for name in ("after", "again"):
            try:
                found.append(Small.create_group().launch(cluster, FlexiblePlacementStrategy([[24]]), name=name).add(0).wait())
            except roost.EngineError as error:
                found.append(str(error))
        other = placement_group([{"GPU": 7, "node:127.0.0.5": 0.001}])
        assert other.wait(60)
        def remove_pending():
            while not (pending := [entry["name"] for entry in placement_group_table().values() if entry["state"] == "PENDING"]):
                time.sleep(0.05)
            remove_placement_group(ray.util.get_placement_group(pending[0]))
        threading.Thread(target=remove_pending).start()
        try:
            Small.create_group().launch(cluster, FlexiblePlacementStrategy([[30, 31]]), name="pending", timeout=60)
        except roost.EngineError as error:
            found.append(str(error))
        print(json.dumps(found))
        """)
    )
    (bundles,), free = seen[:2]
    assert sorted(bundle["GPU"] for bundle in bundles.values()) == [4, 8, 8] and free == 12
    assert seen[2].startswith("the accelerators of the run were not free after 3 seconds: node 3 (127.0.0.5) has 3 of 8 free, 4 are wanted")
    assert seen[3] == ["waiting for accelerators"] and seen[4] == [] and seen[5] == [0]
    assert seen[6].startswith("the accelerators of this run are no longer reserved: its placement group ") and "was removed by somebody else" in seen[6]
    assert seen[7] == [0]
    assert seen[8].startswith("the placement group of this run, ") and seen[8].endswith("was removed by somebody else while it waited (launch again)")
    assert four.kept() == []


def test_allocate_and_attaching_are_what_the_seed_says(four: RayCluster) -> None:
    """Its two pieces of code as they stand, with values for the names in them; and what is not in them."""
    seen = four.drive(
        script("""
        import sys
        from types import SimpleNamespace
        class Plain:
            def __init__(self, first, second=0):
                self.values = [first, second]
            def look(self):
                return self.values + [os.environ["CUDA_VISIBLE_DEVICES"], os.environ["RANK"], ray.get_runtime_context().get_node_id()]
        cluster = Cluster(num_nodes=4, engine="ray")
        names = {"Cluster": Cluster, "cls": type("Seed", (Plain,), {"__init__": lambda self: Plain.__init__(self, 9)}), "worker_name": "seed", "node_id": 1, "gpu_id": 7, "env_vars": {"CUDA_VISIBLE_DEVICES": "7", "RANK": "3"}}
        exec(open(sys.argv[1] + "/allocate.py").read(), names)
        names |= {"self": SimpleNamespace(), "NodeManager": NodeManager}
        exec(open(sys.argv[1] + "/attach.py").read(), names)
        assert cluster.namespace == Cluster.NAMESPACE
        it, started = names["self"], ray.get(names["handle"].look.remote())
        seed = [started[:4], started[4] == cluster.get_node_info(1).ray_id, it._num_nodes, [node.node_ip for node in it._nodes], it._master_ip, it._master_port == cluster._engine_link().master_port, it._num_gpus_per_node]
        handle = Cluster.allocate(Plain, "plain", 2, 5, {"CUDA_VISIBLE_DEVICES": "5", "RANK": 0}, cls_args=[1], cls_kwargs={"second": 2})
        other = cluster.allocate(cls=Plain, worker_name="other:1", worker_rank=1, node_rank=3, max_concurrency=2, env_vars={"CUDA_VISIBLE_DEVICES": "", "RANK": "1"}, node_group_label="cluster", cls_args=(3,))
        looked = ray.get([handle.look.remote(), ray.get_actor("other:1").look.remote()])
        found = [looked[0][:4], looked[0][4] == cluster.get_node_info(2).ray_id, looked[1][:4], looked[1][4] == cluster.get_node_info(3).ray_id]
        for arguments in (("a", 4, 0, {}), ("a", -1, 0, {}), ("a", 0, 8, {}), ("plain", 0, 0, {})):
            try:
                cluster.allocate(Plain, *arguments)
            except roost.Error as error:
                found.append(say(error))
        found.append(ray.available_resources()["GPU"])
        alone = cluster.allocate(Plain, "alone:1", 1, 7, {}, cls_args=(0,))
        seed.append(ray.get(alone.look.remote())[2:4])
        print(json.dumps([*found, seed]))
        """),
        str(SEEDS / "004_d03dc78872433697"),
    )
    assert seen[9] == [[9, 0, "7", "3"], True, 4, ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"], "127.0.0.2", True, 8, ["7", "0"]]
    assert seen[:4] == [[1, 2, "5", "0"], True, [3, 0, "", "1"], True]
    assert seen[4:8] == [
        ["RankError", "node_id 4 is out of range: there are 4 nodes"],
        ["RankError", "node_id -1 is out of range: there are 4 nodes"],
        ["RankError", "gpu_id 8 is out of range: node 0 (127.0.0.2) has 8 accelerators"],
        ["EngineError", "a worker named 'plain' is in namespace 'roost' already (launch it under another name, or close the group that has it)"],
    ]
    assert seen[8] == 30


def test_the_sessions_of_seed_001_run_as_they_stand(four: RayCluster) -> None:
    """One after the other by one driver: joining a cluster takes longer than all that they do."""
    names = ["flexible", "packed", "node"]
    (four.folder / "torch.py").write_text(TORCH)
    for name in names:
        (four.folder / f"{name}.txt").write_text(with_our_import((SEEDS / "001_17cd740334cacf71" / f"{name}-workers.txt").read_text()))
    done = four.run(
        """if True:
        import doctest, json, sys
        class Checker(doctest.OutputChecker):  # a raylet on a busy machine has a word to say of its own
            def check_output(self, want, got, flags):
                return super().check_output(want, "".join(line for line in got.splitlines(True) if "(raylet)" not in line), flags)
        doctest.OutputChecker = Checker
        print(json.dumps([doctest.testfile(f"{name}.txt", module_relative=False) for name in sys.argv[1:]]))
        """,
        *names,
        ROOST_ENGINE="ray",
    )
    counts = last_json(done.stdout, done.stderr)
    assert [failed for failed, _ in counts] == [0, 0, 0] and all(attempted > 4 for _, attempted in counts), done.stdout + done.stderr


def test_the_worker_of_seed_000_runs_as_it_stands(four: RayCluster) -> None:
    folder = SEEDS / "000_7abe36f9418ee2f5"
    (four.folder / "worker.py").write_text(with_our_import((folder / "worker.py").read_text()))
    (four.folder / "conf.yaml").write_bytes((folder / "conf.yaml").read_bytes())
    done = subprocess.run([sys.executable, "worker.py"], env=four.driver(ROOST_ENGINE="ray"), cwd=four.folder, capture_output=True, text=True, timeout=WAIT)
    assert done.returncode == 0, done.stdout + done.stderr
    # Ray shows lines of workers while the driver lives, and keeps all of them on their node.
    kept = "".join(path.read_text() for path in four.folder.rglob("worker-*.out") if not path.is_symlink())
    for rank in range(4):
        assert f"worker_group_TestWorker-Rank-{rank}][worker.py:9] Hello from TestWorker rank {rank}!" in kept, kept


def test_ray_that_was_initialised_before_is_refused(four: RayCluster) -> None:
    """R12, R13: no side effect, one clear line, and never the token."""
    seen = four.drive(
        script("""
        ray.init(address=os.environ["RAY_ADDRESS"], namespace="mine", log_to_driver=False)
        try:
            Cluster(num_nodes=4, engine="ray")
        except roost.EngineError as error:
            print(json.dumps([str(error), ray.is_initialized(), ray.util.list_named_actors(all_namespaces=True)]))
        """)
    )
    assert seen[0].startswith("Ray was initialised before the Cluster") and seen[1:] == [True, []]


def test_a_token_that_is_missing_or_wrong_is_said_in_one_line(four: RayCluster) -> None:
    (four.folder / "wrong").write_text("f" * 64)
    for variables in ({"RAY_AUTH_TOKEN_PATH": str(four.folder / "wrong")}, {"RAY_AUTH_MODE": "disabled"}):
        done = four.run(
            script("""
            try:
                Cluster(num_nodes=4, engine="ray")
            except roost.EngineError as error:
                print(json.dumps(str(error)))
            """),
            **variables,
        )
        assert "does not accept this process: its token is missing or wrong" in last_json(done.stdout, done.stderr), done.stdout + done.stderr
        assert "f" * 64 not in done.stdout + done.stderr and (four.folder / "token").read_text() not in done.stdout + done.stderr
