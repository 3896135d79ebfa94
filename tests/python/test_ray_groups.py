"""Groups of workers on four nodes with eight accelerators each: launching, calls, failures, managers. One driver of one
cluster serves all tests; groups end with the test that launched them."""

import os
import re
from collections.abc import Iterator

import pytest

from chance import dice
from ray_cluster import RayCluster, Session
from ray_four import script
from test_worker_seeds import SEEDS

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def one(four: RayCluster) -> Iterator[Session]:
    session = Session(four)
    yield session
    session.close()


def test_a_constructor_that_fails_raises_from_launch_and_leaves_nothing(one: Session) -> None:
    seen = one.drive(
        script("""
        cluster = Cluster(num_nodes=4, engine="ray")
        found = []
        try:
            Small.create_group(failing=1).launch(cluster, PackedPlacementStrategy(6, 9), name="actor")
        except roost.WorkerError as error:
            found += [say(error), error.rank, error.node_rank, error.accelerators, repr(error.__cause__), "in __init__" in error.traceback]
        found.append([ray.util.list_named_actors(), asked("NodeManager", "holds")[0]])
        group = Small.create_group(5).launch(cluster, PackedPlacementStrategy(8, 8), name="actor")
        found.append(group.add(1).wait())
        try:
            cluster._engine_link().launch(__import__("roost._work.engine")._work.engine.LaunchRequest(Small, (), {}, "actor", PackedPlacementStrategy(0, 0).get_placement(cluster)))
        except roost.EngineError as error:
            found += [say(error), error.code]
        group._close()
        group = Small.create_group(6).launch(cluster, PackedPlacementStrategy(8, 8), name="actor")
        found.append(group.add(1).wait())
        print(json.dumps(found))
        """)
    )
    assert seen[0] == [
        "WorkerError",
        "rank 1 of group 'actor' (node 0, accelerators 7) failed to start: ValueError: cannot be made",
    ]
    assert seen[1:6] == [1, 0, ["7"], "ValueError('cannot be made')", True]
    assert [sorted(seen[6][0]), seen[6][1]] == [["CollectiveManager", "NodeManager", "WorkerManager"], {}]
    assert seen[7] == [6]
    assert seen[8] == [
        "EngineError",
        "a worker named 'actor:0' is in namespace 'roost' already (use another name, or end the group or actor that has it)",
    ]
    assert seen[9] == "name"
    assert seen[10] == [7]


def test_a_rank_that_dies_is_told_with_its_node_and_takes_no_other_with_it(one: Session) -> None:
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
        while not roost._ray.group.is_known_dead(ray, group._link._ranks[1]):
            time.sleep(0.01)
        found.append([outcome.kind for outcome in group.execute_on(1).add(1).outcomes])  # the first call after its end
        again = roost._ray.run.current.find_group("actor")
        while {"actor:1", "actor:2"} & set(ray.util.list_named_actors()):
            time.sleep(0.05)
        again = roost._ray.run.current.find_group("actor")
        found.append([again.world_size, [rank.end is None for rank in again._ranks], [rank.node for rank in again._ranks]])
        print(json.dumps(found))
        """)
    )
    assert seen[0] == [3_000_000] * 3
    ends = [
        [[3, "unknown"]],
        [[0, "value"], [1, "value"], [2, "value"], [3, "not_run"]],
        [[3, "not_run"]],
        [[2, "unknown"]],
        [[2, "not_run"]],
    ]
    for told, kinds in zip(seen[1:6], ends, strict=True):
        rank = kinds[-1][0]
        place, _, cause = told[0].partition(": the worker on node 1 (127.0.0.3) has ended: ")
        assert place.startswith(f"rank {rank} of group 'actor' (node 1, accelerators {rank - 2}) failed") and re.search(
            "process .*died|exit", cause
        ), told
        assert told[1:] == [rank, 1, kinds]
    assert seen[6:] == [
        [1, 2],
        ["not_run"],
        [4, [True, False, False, False], ["node 0 (127.0.0.2)", *["its node"] * 3]],
    ]


def test_workers_ask_the_managers_and_locks_end_with_their_holder(one: Session) -> None:
    """The registry behind the actors is the local engine's."""
    seen = one.drive(
        script("""
        cluster = Cluster(num_nodes=4, engine="ray")
        engine = cluster._engine_link()
        group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [9]]), name="askers")
        other = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[9]]), name="others")
        together = Together.create_group().launch(cluster, NodePlacementStrategy([0]), name="together")
        found = [group.ask().wait(), engine.master_port, WorkerManager.get_proxy().get_worker_info("nobody:0")]
        assert group.folder().wait() == [os.getcwd()] * 2, "workers work where their driver does"
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


def test_names_are_free_again_after_each_end(one: Session) -> None:
    """R7: made, closed and made again under one name. R8: all CPUs of a node are somebody else's, and nobody waits for one."""
    count = 1000 if os.environ.get("ROOST_SOAK") == "1" else 4
    seen = one.drive(
        script(f"""
        cluster = Cluster(num_nodes=4, engine="ray")
        hog = ray.util.placement_group([{{"CPU": cluster.get_node_info(0).num_cpus, "node:127.0.0.2": 0.001}}])
        found = [hog.wait(30)]
        for number in range({count}):
            group = Small.create_group(number).launch(cluster, FlexiblePlacementStrategy([[3 + number % 2 * 8]]), name="again")
            found.append(group.add(0).wait()[0])
            group._close()
        ray.util.remove_placement_group(hog)
        ports, known = cluster._engine_link()._ports, cluster._engine_link()._groups
        print(json.dumps([found, len(ports._own[0]._leases), ports._leased, len(known) <= 2]))
        """)
    )
    assert seen == [[True, *range(count)], 1, {"1": {}}, True]  # the run's own port; the groups that may still be there


def test_output_of_all_nodes_is_kept_from_its_first_line_and_shown_unless_it_is_not_wanted(
    four: RayCluster, one: Session
) -> None:
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
            assert [line for line in kept if line.startswith(("started", name))] == [
                f"started as {rank}",
                *(f"{name} {number}" for number in range(3000)),
            ]
            assert (folder / "stderr.log").read_text().splitlines()[-1] == "not whole"
            assert folder.stat().st_mode & 0o777 == 0o700 and (folder / "stdout.log").stat().st_mode & 0o777 == 0o600
    assert "shown 0\n" in printed and "hidden" not in printed and "roost-mark" not in printed
    for rank in range(2):  # what its constructor writes, too
        assert re.search(rf"\(shown:{rank} pid=[^)]*\)\S* started as {rank}\n", printed), printed[:2000]


def test_what_is_not_as_planned_is_said_loudly(one: Session) -> None:
    """A worker whose environment was changed on its way is not started; what its own constructor changes is its own."""
    seen = one.drive(
        script("""
        import roost._ray.engine as engine
        cluster = Cluster(num_nodes=4, engine="ray")
        plan = engine.RayEngine.options
        def wrong(self, name, node_rank, variables, *rest):
            return plan(self, name, node_rank, dict(variables) | {"CUDA_VISIBLE_DEVICES": "0"}, *rest)
        engine.RayEngine.options = wrong
        try:
            Small.create_group().launch(cluster, FlexiblePlacementStrategy([[3]]), name="changed")
        except roost.EngineError as error:
            said = [str(error), [name for name in ray.util.list_named_actors() if name.startswith("changed")]]
        finally:
            engine.RayEngine.options = plan
        print(json.dumps([*said, Changer.create_group().launch(cluster, FlexiblePlacementStrategy([[3]]), name="changer").rank().wait()]))
        """)
    )
    assert seen[0].startswith(
        "rank 0 of 'changed' is not as planned: CUDA_VISIBLE_DEVICES is '0' and not '3'"
    ) and seen[1:] == [[], ["7"]]


def test_managers_that_are_killed_are_there_again_and_have_forgotten_nothing(one: Session) -> None:
    """R3, one, two or all at a time, during a thousand calls to workers and to managers: Ray makes them again, with what
    the run is and what was registered, locked, held and leased."""
    moments = dice().choices(range(100), k=6)
    seen = one.drive(
        f"moments = {moments}\n"
        + script("""
        cluster = Cluster(num_nodes=4, engine="ray")
        engine = cluster._engine_link()
        group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [9]]), name="actor")
        other = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[9]]), name="others")
        group.execute_on(1).take().wait()
        waiting = other.take()
        nodes = ray.get_actor("NodeManager")
        ports, held, found, done = engine._ports.lease(1, (1, 2), 'test'), ray.get(nodes.holds.remote()), [], 0
        def kill_some():
            names = ["WorkerManager", "NodeManager", "CollectiveManager"]
            for turn, killed in enumerate(([0], [1], [2], [0, 1], [1, 2], [0, 1, 2])):
                while done < 150 * turn + moments[turn]:
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
        ray.kill(engine._ports._holders[1])
        first, block = engine._ports.lease(1, (1, 2), 'test')
        found.append({first, block, block + 1} & {ports[0], ports[1], ports[1] + 1} == set())
        found.append(group.execute_on(0).view().wait()[0][3][0])
        print(json.dumps(found))
        """)
    )
    once = [True, 1, True]
    assert seen == [
        [once],
        [once],
        [once],
        [once] * 2,
        [once] * 2,
        [once] * 3,
        [True, True],
        "waits",
        1,
        True,
        [True],
        True,
        "127.0.0.5",
    ]


def test_a_killed_process_that_attached_leaves_neither_locks_nor_devices(one: Session) -> None:
    """But devices that others of the run use too stay the run's, in Ray's books as well. And a lock that did not come in
    time is not held when it comes free."""
    seen = one.drive(
        script("""
        import subprocess, sys
        cluster = Cluster(num_nodes=4, engine="ray")
        cluster.namespace
        group = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0]]), name="mine")
        held = lambda: sum(map(len, asked("NodeManager", "holds")[0].values()))
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


def test_allocate_and_attaching_are_what_the_seed_says(one: Session) -> None:
    """Its two pieces of code as they stand, with values for the names in them; and what is not in them."""
    seen = one.drive(
        script("""
        from types import SimpleNamespace
        class Plain:
            def __init__(self, first, second=0):
                self.values = [first, second]
            def look(self):
                return self.values + [os.environ["CUDA_VISIBLE_DEVICES"], os.environ["RANK"], ray.get_runtime_context().get_node_id()]
            def fails(self):
                raise KeyError("no such")
        cluster = Cluster(num_nodes=4, engine="ray")
        names = {"Cluster": Cluster, "cls": type("Seed", (Plain,), {"__init__": lambda self: Plain.__init__(self, 9)}), "worker_name": "seed", "node_id": 1, "gpu_id": 7, "env_vars": {"CUDA_VISIBLE_DEVICES": "7", "RANK": "3"}}
        exec(open(FOLDER + "/allocate.py").read(), names)
        names |= {"self": SimpleNamespace(), "NodeManager": NodeManager}
        exec(open(FOLDER + "/attach.py").read(), names)
        assert cluster.namespace == Cluster.NAMESPACE
        it, started = names["self"], ray.get(names["handle"].look.remote())
        seed = [started[:4], started[4] == cluster.get_node_info(1).ray_id, it._num_nodes, [node.node_ip for node in it._nodes], it._master_ip, it._master_port == cluster._engine_link().master_port, it._num_gpus_per_node]
        handle = Cluster.allocate(Plain, "plain", 2, 5, {"CUDA_VISIBLE_DEVICES": "5", "RANK": 0}, cls_args=[1], cls_kwargs={"second": 2})
        other = cluster.allocate(cls=Plain, worker_name="other:1", worker_rank=1, node_rank=3, max_concurrency=2, env_vars={"CUDA_VISIBLE_DEVICES": "", "RANK": "1"}, node_group_label="cluster", cls_args=(3,))
        looked = [ray.get(handle.look.remote()), asked("other:1", "look")]
        found = [looked[0][:4], looked[0][4] == cluster.get_node_info(2).ray_id, looked[1][:4], looked[1][4] == cluster.get_node_info(3).ray_id]
        for arguments in (("a", 4, 0, {}), ("a", -1, 0, {}), ("a", 0, 8, {}), ("plain", 0, 0, {})):
            try:
                cluster.allocate(Plain, *arguments)
            except roost.Error as error:
                found.append(say(error))
        held = asked("NodeManager", "holds")[0]
        found.append([7 in held[cluster.get_node_info(1).ray_id], 5 in held[cluster.get_node_info(2).ray_id], ray.available_resources()["GPU"] + sum(map(len, held.values()))])
        alone = cluster.allocate(Plain, "alone:1", 1, 7, {}, cls_args=(0,))
        seed.append(ray.get(alone.look.remote())[2:4])
        # As on this machine, and still a handle of Ray's.
        called = alone.look()
        seed.append([called.wait(60)[2:4] == ray.get(alone.look.remote())[2:4], called.done(), isinstance(alone, ray.actor.ActorHandle), alone.look.options(num_returns=1) is not None])
        @ray.remote(num_cpus=0)
        def pass_on(handle):
            return ray.get(handle.look.remote())[:2]
        seed.append(ray.get(pass_on.remote(alone)))
        try:
            alone.fails().wait(60)
        except roost.WorkerError as error:
            seed.append([str(error).splitlines()[0], type(error.__cause__.cause).__name__])
        ray.kill(alone)
        while True:  # Ray ends it a moment later, and calls may still be answered
            try:
                ray.get(alone.look.remote())
            except ray.exceptions.RayActorError:
                break
        try:
            alone.look().wait(60)
        except roost.WorkerError as error:
            seed.append(error.outcomes[0].kind)
        print(json.dumps([*found, seed]))
        """).replace("FOLDER", repr(str(SEEDS / "004_d03dc78872433697")))
    )
    assert seen[9] == [
        [9, 0, "7", "3"],
        True,
        4,
        ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"],
        "127.0.0.2",
        True,
        8,
        ["7", "0"],
        [True, True, True, True],
        [0, 0],
        ["rank 0 of group 'alone:1' (node 1, accelerators 7) failed in 'fails': KeyError: 'no such'", "KeyError"],
        "unknown",
    ]
    assert seen[:4] == [[1, 2, "5", "0"], True, [3, 0, "", "1"], True]
    assert seen[4:8] == [
        ["RankError", "node_id 4 is out of range: there are 4 nodes"],
        ["RankError", "node_id -1 is out of range: there are 4 nodes"],
        ["RankError", "gpu_id 8 is out of range: node 0 (127.0.0.2) has 8 accelerators"],
        [
            "EngineError",
            "a worker named 'plain' is in namespace 'roost' already (use another name, or end the group or actor that has it)",
        ],
    ]
    assert seen[8] == [True, True, 32]


def test_a_fork_of_the_driver_is_told_whose_its_groups_are(one: Session) -> None:
    """Ray would let it wait for ever."""
    said, status, *values = one.drive(
        script("""
        group = Small.create_group().launch(Cluster(num_nodes=4, engine="ray"), FlexiblePlacementStrategy([[0]]), name="forked")
        handle, (reader, writer) = group.add(1), os.pipe()
        if (child := os.fork()) == 0:
            said = []
            for ask in (handle.wait, handle.done, lambda: handle.outcomes, lambda: group.add(1), lambda: roost.WorkerGroup.from_group_name(Small, "forked"), NodeManager.get_proxy().get_nodes):
                try:
                    ask()
                except RuntimeError as error:
                    said.append(str(error))
            os.write(writer, json.dumps(said).encode())
            os._exit(5)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps([json.loads(os.read(reader, 65536)), status, handle.wait(), group.add(2).wait()]))
        """)
    )
    call, group = (
        f"a {what} belongs to the process that {did} it, and this is a fork of it"
        for what, did in (("call", "made"), ("group", "launched"))
    )
    ray = "this process is a fork of one that has joined Ray, and Ray does not work in a fork (start processes with subprocess, or with multiprocessing's spawn)"
    assert said == [call, call, call, group, ray, ray] and status == 5 and values == [[1], [2]]
