"""The Ray engine on four nodes with eight accelerators each: what is a driver of its own, or two. One cluster serves all
tests, and those of test_ray_groups.py."""

import os
import signal
import subprocess
import sys

import pytest

from ray_cluster import WAIT, RayCluster, last_json
from ray_four import script, wait_line
from test_worker_seeds import SEEDS, TORCH, with_our_import

pytestmark = pytest.mark.ray


def test_a_cluster_is_seen_in_node_order_and_by_whoever_attaches(four: RayCluster) -> None:
    seen = four.drive(
        script("""
        import subprocess, sys
        cluster = Cluster(num_nodes=4, engine="ray")
        engine = cluster._engine_link()
        group = Small.create_group().launch(cluster, NodePlacementStrategy([1, 3]), name="lookers")
        held = lambda: asked("NodeManager", "holds")[0]
        mine = Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [17]]), name="mine")
        before = held()
        attach = "from small import *; c = Cluster(engine='ray'); e = c._engine_link(); print([n.node_ip for n in c.nodes], e.namespace, e.run_id, e.master_port);"
        attach += "g = Small.create_group().launch(c, FlexiblePlacementStrategy([[17], [18]]), name='theirs'); print(g.add(1).wait(), asked('NodeManager', 'holds')[0] == json.loads(sys.argv[1]))"
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
            "other": other.stdout + "".join(line for line in other.stderr.splitlines(True) if "waiting for group" not in line),  # on a busy machine
            "mine": f"{[node.node_ip for node in cluster.nodes]} {engine.namespace} {engine.run_id} {engine.master_port}\\n[1, 2] True",
            "held": held() == before,
            "master": [engine.master_address, engine.master_port],
            "again": [Cluster().num_nodes, Cluster(num_nodes=4, engine="ray").namespace == engine.namespace],
            "refused": refused,
            "port holders": [node.node_rank for node in cluster.nodes for entry in roost._ray.join.state().actors().values() if entry["ActorClassName"] == "PortHolder" and entry["State"] == "ALIVE" and entry["Address"]["NodeID"] == node.ray_id],
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
    assert seen["port holders"] == [1]  # its own node's ports the driver leases itself
    assert seen["refused"].startswith(
        "this process has a run on Ray already, in namespace 'roost', for a Cluster with other arguments"
    )
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
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "NODE_RANK",
        "GROUP_RANK",
        "GROUP_NAME",
        "WORKER_NAME",
        "CLUSTER_NODE_RANK",
        "NODE_LOCAL_RANK",
        "NODE_LOCAL_WORLD_SIZE",
        "LOCAL_ACCELERATOR_RANK",
        "VISIBLE_DEVICES",
        "LOCAL_HARDWARE_RANKS",
        "NODE_GROUP_LABEL",
        "ACCELERATOR_TYPE",
        "ACCELERATOR_MODEL",
        "ISOLATE_ACCELERATOR",
        "CATCH_SYSTEM_FAILURE",
        "RAY_ACTOR",
        "CUDA_VISIBLE_DEVICES",
        "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES",
        "NCCL_CUMEM_ENABLE",
        "EGL_DEVICE_ID",
        "MUJOCO_EGL_DEVICE_ID",
        "FAR",
    }
    ours = {"ROOST_CALL_SOCKET", "ROOST"}  # of the local engine's own connection, and of this test
    for one, other in zip(local, remote, strict=True):
        for rank, (here, there) in enumerate(zip(one, other, strict=True)):
            for name in sorted(names - RUN_DEPENDENT - ours):
                assert here.get(name) == there.get(name), (rank, name)
            assert all(there.get(name) for name in RUN_DEPENDENT), there
    assert [rank["CUDA_VISIBLE_DEVICES"] for rank in remote[0]] == ["6", "7", "0", "1"]
    assert [rank["MASTER_ADDR"] for rank in remote[0]] == ["127.0.0.2"] * 4 and {
        rank["MASTER_ADDR"] for rank in remote[2]
    } == {"127.0.0.3"}
    assert not any("OMP_NUM_THREADS" in rank for group in remote for rank in group)  # Ray sets it for its own
    assert remote[2][0]["FAR"] == "yes" and remote[2][0]["PATH"].startswith("/far/bin:") and "FAR" not in remote[0][0]
    assert answers == local_answers == [[11, 12, 13, 14], [17, 15]]
    assert errors == local_errors
    assert reserved == [32, []]


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
        cluster._engine_link().reserver()._is_reserving = False
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
    assert (
        f"accelerators are in use by run {run} of " in clash[1]
        and f"in namespace '{namespace}' (node 0 (127.0.0.2): 6; node 1 (127.0.0.3): 1)" in clash[1]
    )
    assert clash[2] == [1]
    assert clash[3].startswith(f"accelerators are in use by run {run} of ") and clash[3].endswith(
        "(node 1 (127.0.0.3): 1); they are shared, as roost.ray.reserve is false"
    )
    assert clash[4:] == [[1]]
    assert four.left() == [[], [], 0] and four.kept() != []  # nobody was there to tidy up; the next run is


def test_devices_are_reserved_once_and_what_others_hold_is_waited_for_within_a_bound(four: RayCluster) -> None:
    """R8, R9: one placement group for all that the config places; a full node is said with its numbers."""
    seen = four.drive(
        script("""
        from ray.util.placement_group import placement_group_table, remove_placement_group, placement_group
        from roost._plan.errors import Timeout
        config = {"cluster": {"num_nodes": 4, "component_placement": {"actor,rollout": "0-15", "critic": "16-19"}}}
        cluster = Cluster(cluster_cfg=config, engine="ray")
        placement = roost.ComponentPlacement(config, cluster)
        groups = [Small.create_group().launch(cluster, FlexiblePlacementStrategy([[0], [8]]), name=name) for name in ("actor", "rollout")]
        found = [[entry["bundles"] for entry in placement_group_table().values() if entry["state"] == "CREATED"], ray.available_resources()["GPU"]]
        other = placement_group([{"GPU": 5, "node:127.0.0.5": 0.001}])
        assert other.wait(60)
        import logging, roost._ray.reserve as reserve
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
        # What the groups still use is the run's, for other runs and in Ray's books.
        held = asked("NodeManager", "holds")[0][cluster.get_node_info(3).ray_id]
        deadline = time.monotonic() + 60
        while ray.available_resources()["GPU"] != 8 and time.monotonic() < deadline:
            time.sleep(0.05)
        found.append([held, ray.available_resources()["GPU"]])
        other = placement_group([{"GPU": 3, "node:127.0.0.5": 0.001}])
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
    assert seen[2].startswith(
        "the accelerators of the run were not free after 3 seconds: node 3 (127.0.0.5) has 3 of 8 free, 4 are wanted"
    )
    assert seen[3] == ["waiting for accelerators"] and seen[4] == [] and seen[5] == [0]
    assert (
        seen[6].startswith("the accelerators of this run are no longer reserved: its placement group ")
        and "was removed by somebody else" in seen[6]
    )
    assert seen[6].endswith(
        "(they are reserved anew, but Ray may have given them to others meanwhile: see `ray status`, then launch again)"
    )
    assert seen[7:9] == [[0], [[0, 1, 2, 3], 8]]
    assert seen[9].startswith("the placement group of this run, ") and seen[9].endswith(
        "was removed by somebody else while it waited (launch again)"
    )
    assert four.kept() == []


def test_the_sessions_of_seed_001_run_as_they_stand(four: RayCluster) -> None:
    """One after the other by one driver: joining a cluster takes longer than all that they do."""
    names = ["flexible", "packed", "node"]
    (four.folder / "torch.py").write_text(TORCH)
    for name in names:
        (four.folder / f"{name}.txt").write_text(
            with_our_import((SEEDS / "001_17cd740334cacf71" / f"{name}-workers.txt").read_text())
        )
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
    assert [failed for failed, _ in counts] == [0, 0, 0] and all(attempted > 4 for _, attempted in counts), (
        done.stdout + done.stderr
    )


def test_the_worker_of_seed_000_runs_as_it_stands(four: RayCluster) -> None:
    folder = SEEDS / "000_7abe36f9418ee2f5"
    (four.folder / "worker.py").write_text(with_our_import((folder / "worker.py").read_text()))
    (four.folder / "conf.yaml").write_bytes((folder / "conf.yaml").read_bytes())
    done = subprocess.run(
        [sys.executable, "worker.py"],
        env=four.driver(ROOST_ENGINE="ray"),
        cwd=four.folder,
        capture_output=True,
        text=True,
        timeout=WAIT,
    )
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
        assert "does not accept this process: its token is missing or wrong" in last_json(done.stdout, done.stderr), (
            done.stdout + done.stderr
        )
        assert (
            "f" * 64 not in done.stdout + done.stderr
            and (four.folder / "token").read_text() not in done.stdout + done.stderr
        )
