"""roost.slime on Ray: the suite of slime_suite.py on four nodes of eight GPUs, and what only Ray does."""

import json
import os
import signal
from collections.abc import Iterator

import pytest

from ray_cluster import RayCluster, Session
from ray_four import wait_line
from slime_suite import PRELUDE, SUITE, Script

pytestmark = pytest.mark.ray

START = f"{PRELUDE}\nimport ray, time\ncluster = None\n"

# Where each slot is, asked by actors of the test's own, one in each bundle.
PROBE = """
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
@ray.remote(num_gpus=1, num_cpus=0)
class Probe:
    def where(self):
        return [ray.util.get_node_ip_address(), str(ray.get_gpu_ids()[0])]
def probed(share):
    probes = [Probe.options(scheduling_strategy=PlacementGroupSchedulingStrategy(share[0], placement_group_bundle_index=index)).remote() for index in share[1]]
    found = ray.get([probe.where.remote() for probe in probes])
    for probe in probes:
        ray.kill(probe)
    return found
"""


@pytest.fixture(scope="module")
def one(four: RayCluster) -> Iterator[Session]:
    session = Session(four)
    session.drive(START)
    yield session
    session.close()


@pytest.mark.parametrize("script", SUITE, ids=lambda script: script.sentence)
def test_on_ray(script: Script, one: Session) -> None:
    assert one.drive(script.text) == script.answer


def test_slots_are_the_same_over_creations_while_others_hold_gpus(four: RayCluster) -> None:
    """GPUs 0 and 1 of two nodes are another job's. A test's own actors see the same map."""
    holder = four.start(
        START
        + """
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
@ray.remote(num_gpus=2, num_cpus=0)
class Holder:
    def held(self): return sorted(ray.get_gpu_ids())
ids = [node["NodeID"] for node in ray.nodes() if node["NodeManagerAddress"] in ("127.0.0.2", "127.0.0.4")]
kept = [Holder.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote() for node in ids]
print("held", json.dumps(ray.get([each.held.remote() for each in kept])), flush=True)
sys.stdin.read()
"""
    )
    try:
        assert wait_line(holder, "held") == "held [[0, 1], [0, 1]]\n"
        seen = four.drive(
            START
            + PROBE
            + """
maps = []
for time_of in range(5):
    pgs = create_placement_groups(job(actor_num_gpus_per_node=28, actor_num_nodes=1, rollout_num_gpus=0), timeout=60)
    from roost._slime.placement import placed_of
    maps.append([[bundle.address, str(bundle.gpu_id)] for bundle in placed_of(pgs["actor"][0]).bundles])
    if time_of == 4:
        independent = probed(pgs["actor"])
    remove_placement_groups(pgs)
print(json.dumps([maps, independent]))
"""
        )
    finally:
        holder.communicate("")
    maps, independent = seen
    assert all(found == maps[0] for found in maps)
    assert maps[0] == independent
    expected = [[f"127.0.0.{last}", str(gpu)] for last in (2, 3, 4, 5) for gpu in range(2 if last in (2, 4) else 0, 8)]
    assert maps[0] == expected


def test_looking_at_28_bundles_takes_one_process_a_node(one: Session) -> None:
    seen = one.drive("""
pgs = create_placement_groups(job(actor_num_gpus_per_node=28, rollout_num_gpus=0), timeout=60)
from roost._slime.placement import placed_of
from roost._ray.bundles import RayReservation
looked = RayReservation(placed_of(pgs["actor"][0]).reservation._ray, pgs["actor"][0])
refs, look_at = [], looked._look_at
looked._look_at = lambda index: refs.append(look_at(index)) or refs[-1]
found = looked.find(60)
seen = ray.get(refs)
print(json.dumps([len(found), len({entry["pid"] for entry in seen}), len({entry["node_id"] for entry in seen})]))
remove_placement_groups(pgs)
""")
    assert seen == [28, 4, 4]


def test_a_program_that_has_joined_ray_itself_and_its_own_group(four: RayCluster) -> None:
    """Also a share whose group the program made with Ray's own words, and a Cluster of roost."""
    seen = four.drive(
        START
        + """
ray.init(address=os.environ["RAY_ADDRESS"], namespace="mine", log_to_driver=False)
pgs = create_placement_groups(job())
group = TrainGroup(job(), 1, 2, pgs["actor"], actor_cls=ray.remote(Trainer))
found = [group.create(timeout=60), ray.get(group.async_train(1, "d")), ray.get_runtime_context().namespace]
remove_placement_groups(pgs)
from ray.util.placement_group import placement_group, remove_placement_group
own = placement_group([{"GPU": 1, "CPU": 1}] * 2)
own.wait(30)
group = TrainGroup(job(), 1, 2, (own, [1, 0], [0, 0]), actor_cls=Trainer)
found.append(group.create(timeout=60))
group.release()
remove_placement_group(own)
print(json.dumps(found))
"""
    )
    assert seen == [[3, 3], [[0, 1, "d", None], [1, 1, "d", None]], "mine", [3, 3]]
    assert four.left() == [[], [], 0]


def test_a_cluster_of_roost_decides_the_engine(four: RayCluster) -> None:
    seen = four.drive(
        START
        + """
cluster = roost.Cluster(num_nodes=4, engine="ray")
pgs = create_placement_groups(job(), cluster)
group = TrainGroup(job(), 1, 2, pgs["actor"], actor_cls=Trainer)
print(json.dumps([group.create(timeout=60), get(group.async_train(1, "d"))]))
"""
    )
    assert seen == [[3, 3], [[0, 1, "d", None], [1, 1, "d", None]]]
    assert four.left() == [[], [], 0]


def test_a_group_that_somebody_else_removes_is_gone(one: Session, four: RayCluster) -> None:
    one.drive("pgs = create_placement_groups(job())\ngroup = TrainGroup(job(), 1, 2, pgs['actor'], actor_cls=Trainer)")
    four.remove_groups()
    seen = one.drive("print(json.dumps(refused(group.create)))\nremove_placement_groups(pgs)")
    assert seen[0] == "EngineError" and "is gone (make the placement groups again" in seen[1]


def test_a_wait_says_what_is_asked_registered_and_free_and_leaves_nothing(one: Session, four: RayCluster) -> None:
    seen = one.drive("""
pgs = create_placement_groups(job())
found = [refused(create_placement_groups, job(actor_num_nodes=3, actor_num_gpus_per_node=8, rollout_num_gpus=8), timeout=seconds) for seconds in (0, 1)]
remove_placement_groups(pgs)
print(json.dumps(found))
""")
    for (kind, words), after in zip(seen, ("0", "1"), strict=True):
        assert kind == "Timeout"
        assert words.startswith(f"no placement group after {after} seconds: 32 GPU and 34 CPU: ")
        assert "registered 32 GPU and 32 CPU, free 24 GPU and 24 CPU (free by node: 127.0.0.2 " in words
        assert words.endswith("add nodes, or ask for less; nothing is reserved)")
    assert "24 of 32 bundles of 1 GPU and 1 CPU are free" in seen[0][1]
    assert four.left() == [[], [], 0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_is_ended_leaves_nothing(four: RayCluster, number: int) -> None:
    driver = four.start(
        START
        + """
pgs = create_placement_groups(job())
group = TrainGroup(job(), 1, 4, pgs["actor"], actor_cls=Faulty)
group.create(timeout=60)
references = group.async_train(1, "hang")
print("up", json.dumps(get([handle.pid.remote() for handle in group._actor_handlers[2:]])), flush=True)
get(references)
"""
    )
    wait_line(driver, "up")
    os.kill(driver.pid, number)
    driver.communicate()
    assert driver.returncode != 0
    assert four.left() == [[], [], 0]


# Takes the GPUs of a node, so that a group lands on the other one.
HOLD = """
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
@ray.remote(num_gpus=2, num_cpus=0)
class Holder:
    def held(self): return True
def hold(address):
    (node,) = [node["NodeID"] for node in ray.nodes() if node["NodeManagerAddress"] == address and node["Alive"]]
    held = Holder.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
    ray.get(held.held.remote())
    return held
"""


@pytest.fixture(scope="module")
def two() -> Iterator[RayCluster]:
    """Two nodes with as many CPUs as GPUs. The first names its GPUs."""
    variables = {0: {"CUDA_VISIBLE_DEVICES": "GPU-bb,GPU-aa"}}
    with RayCluster(nodes=2, gpus=2, cpus=3, variables=variables) as cluster:
        yield cluster


def test_gpus_with_names_keep_the_order_of_the_visible_ones(two: RayCluster) -> None:
    seen = two.drive(
        START
        + HOLD
        + """
kept = hold("127.0.0.3")
args = job(debug_train_only=True, actor_num_gpus_per_node=2)
pgs = create_placement_groups(args, timeout=30)
group = TrainGroup(args, 1, 2, pgs["actor"], actor_cls=Trainer)
group.create(timeout=60)
seen = get([handle.seen.remote() for handle in group._actor_handlers])
print(json.dumps([pgs["actor"][2], [variables["LOCAL_RANK"] for _, variables, _ in seen]]))
"""
    )
    assert seen == [["GPU-bb", "GPU-aa"], ["0", "1"]]


def test_one_cpu_too_few_is_said_with_counts(two: RayCluster) -> None:
    """Four bundles fit, but one of the two CPUs for the manager and its lock is missing."""
    seen = two.drive(
        START
        + HOLD
        + """
kept = ray.remote(num_cpus=1)(lambda: time.sleep(600)).remote()
while ray.available_resources().get("CPU", 0) != 5: time.sleep(0.02)
print(json.dumps(refused(create_placement_groups, job(actor_num_gpus_per_node=2, rollout_num_gpus=2), timeout=2)))
"""
    )
    assert seen[0] == "Timeout"
    words = "4 GPU and 6 CPU: 1 of 2 CPUs are free for the rollout manager and its lock; registered 4 GPU and 6 CPU, free 0 GPU and 1 CPU"
    assert words in seen[1]
    assert two.left() == [[], [], 0]


def test_bundles_of_a_lost_node_are_learned_again(two: RayCluster) -> None:
    """Runs last of these: a node is lost and another comes."""
    driver = two.start(
        START
        + HOLD
        + """
kept = hold("127.0.0.2")
args = job(debug_train_only=True, actor_num_gpus_per_node=2)
pgs = create_placement_groups(args, timeout=30)
from roost._slime.placement import placed_of
placed = placed_of(pgs["actor"][0])
print("at", placed.bundles[0].address, flush=True)
sys.stdin.readline()
group = TrainGroup(args, 1, 2, pgs["actor"], actor_cls=Trainer)
answers = group.create(timeout=120)
print("now", json.dumps([answers, [bundle.address for bundle in placed.bundles], pgs["actor"][1] == [bundle.index for bundle in placed.bundles]]), flush=True)
"""
    )
    assert wait_line(driver, "at") == "at 127.0.0.3\n"
    two.kill_node(3)
    two.add_node(7, gpus=2, cpus=3)
    two.await_nodes(2)
    assert driver.stdin
    driver.stdin.write("\n")
    driver.stdin.flush()
    seen = json.loads(wait_line(driver, "now").partition(" ")[2])
    _, err = driver.communicate()
    assert seen == [[3, 3], ["127.0.0.7", "127.0.0.7"], True]
    assert "moved from 127.0.0.3 GPU 0 to 127.0.0.7 GPU 0" in err
