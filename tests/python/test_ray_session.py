"""A program that shuts Ray down itself, or whose cluster is gone: nothing of roost starts Ray again, waits, or touches what the
program does with Ray since.

One cluster serves both tests that need one; the second ends it."""

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from ray_cluster import RayCluster, last_json
from ray_four import script, wait_line, write_module
from roost._ray import session as ray_session
from roost._ray.session import Session

pytestmark = pytest.mark.ray

OVER = "Ray was shut down in this process, and its run and groups have ended with that (make a Cluster and launch its groups again; a run leaves Ray by itself when the program ends)"


def module(node: Any, **words: Any) -> Any:
    return SimpleNamespace(
        _private=SimpleNamespace(worker=SimpleNamespace(global_worker=SimpleNamespace(node=node))),
        exceptions="errors",
        **words,
    )


class Node:
    """Ray makes one at each ray.init()."""


def test_a_session_is_over_when_ray_was_shut_down_also_when_it_was_initialised_again() -> None:
    first, second = Node(), Node()
    ray = module(first, get=lambda: "answer")
    session = Session(ray)
    assert session.is_joined and session.get() == "answer"
    for now in (None, second):
        ray._private.worker.global_worker.node = now
        assert not session.is_joined and session.exceptions == "errors"
        for name in ("get", "kill", "remote", "nodes", "util", "is_initialized", "shutdown"):
            with pytest.raises(roost.EngineError) as caught:
                getattr(session, name)
            assert str(caught.value) == OVER
    session.become(Session(ray))
    assert session.is_joined
    first = second = None  # type: ignore[assignment]
    ray._private.worker.global_worker.node = None
    assert not session.is_joined  # nobody has either of them any more


def test_ray_starts_nothing_by_itself_until_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for own in (True, False):  # RAY_ENABLE_AUTO_CONNECT is the user's
        hook = SimpleNamespace(enable_auto_connect=own)
        monkeypatch.setattr(ray_session, "switch", lambda hook=hook: hook)
        ray_session.forbid_start()
        ray_session.forbid_start()
        assert hook.enable_auto_connect is False
        ray_session.allow_start()
        ray_session.allow_start()
        assert hook.enable_auto_connect is own


@pytest.fixture(scope="module")
def one() -> Iterator[RayCluster]:
    with RayCluster(nodes=1, gpus=1) as cluster:
        write_module(cluster)
        yield cluster


SHUT_DOWN = """
cluster = Cluster(num_nodes=1, engine="ray")
group = Small.create_group().launch(cluster, PackedPlacementStrategy(0, 0), name="small")
done = group.add(1)
told = [done.wait()]
handle = group.block()
ray.shutdown()

def caught(call):
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)

told.append(done.wait())
calls = [
    lambda: group.add(1), lambda: group.execute_on(0).add(1), handle.wait, handle.done, lambda: asyncio.run(handle.async_wait()),
    lambda: WorkerManager.get_proxy().get_worker_info("small:0"), lambda: Small.create_group().launch(cluster, name="other"), lambda: Cluster.allocate(Small, "one", 0, 0, {}),
]
told.append([caught(call) for call in calls])
told.append([caught(lambda: ray.get_actor("NodeManager", namespace="roost"))[0], ray.is_initialized()])

# A session of the program's own, in which it has an actor of the same name: closing the old group is no end of that.
ray.init(address=os.environ["RAY_ADDRESS"], namespace="roost", logging_level="error")
@ray.remote(num_cpus=0)
class Mine:
    def value(self): return 7
mine = Mine.options(name="small:0").remote()
told.append([ray.get(mine.value.remote()), caught(lambda: group.add(1)), group.close(), caught(lambda: group.add(1)), ray.get(mine.value.remote()), caught(lambda: Cluster(num_nodes=1, engine="ray"))])
ray.shutdown()

# A run after a run, with the same names.
again = Cluster(num_nodes=1, engine="ray")
other = Small.create_group(5).launch(again, PackedPlacementStrategy(0, 0), name="small")
told.append([other.add(1).wait(), caught(lambda: group.add(1)), cluster._engine_link().close(), other.add(2).wait(), ray.is_initialized()])
ray.shutdown()
print(json.dumps(told))
"""


def test_a_program_that_shuts_ray_down_is_told_so_and_ends_at_once_and_nothing_is_left(one: RayCluster) -> None:
    done = one.run(script(SHUT_DOWN))
    assert done.returncode == 0 and not done.stderr, f"{done.stdout}\n{done.stderr}"
    first, kept, calls, implicit, own, second = last_json(done.stdout)
    assert first == kept == [1]
    assert calls == [["EngineError", OVER]] * len(calls)
    assert implicit == ["RaySystemError", False]
    value, before, closed, after, still, refused = own
    assert (value, closed, still) == (7, None, 7) and before == after == ["EngineError", OVER]
    assert refused[0] == "EngineError" and refused[1].startswith("Ray was initialised before the Cluster")
    assert second == [[6], ["EngineError", OVER], None, [7], True]
    assert one.left() == [[], [], 0] and one.kept() == []


GONE = """
import os, sys, ray, roost
class Sitter(roost.Worker):
    def pid(self): return os.getpid()
cluster = roost.Cluster(num_nodes=1, engine="ray")
group = Sitter.create_group().launch(cluster, roost.NodePlacementStrategy([0]), name="sitters")
if sys.argv[1] == "left":
    ray.shutdown()
print("ready", flush=True)
input()
group.close()
"""


def test_a_program_whose_cluster_is_gone_ends_soon_with_its_own_status(one: RayCluster) -> None:
    """Whether it had left the cluster before or not. Ray itself would wait for the cluster for a minute, and end the program then."""
    drivers: dict[str, subprocess.Popen[str]] = {}
    try:
        for word in ("left", "joined"):
            drivers[word] = one.start(GONE, word)
        for driver in drivers.values():
            wait_line(driver, "ready")
        one.close()
        said = {word: driver.communicate("\n", timeout=300) for word, driver in drivers.items()}
    finally:
        for driver in drivers.values():
            driver.kill()
    assert {word: driver.returncode for word, driver in drivers.items()} == {"left": 0, "joined": 0}, said
    assert said["left"] == ("", "") and "roost" not in said["joined"][1], said
