"""What the Ray engine adds to Ray: medians of interleaved rounds, printed as JSON.

    .venv/bin/python bench/ray_cost.py [rounds] [workers]

launch: workers started by a group against a bare loop that creates and awaits as many pinned, named actors with
the same env_vars. call: one rank asked by a group against a bare actor call. probe: what a node is asked against
an empty task there, once both are warm."""

import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/python"))

MODULE = """
from roost import Worker
class Adder(Worker):
    def add(self, number):
        return number
class Bare:
    def add(self, number):
        return number
"""


def measure(rounds: int, workers: int) -> dict[str, float]:
    """Runs as the driver of the cluster."""
    import ray
    from costed import Adder, Bare
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    import roost
    from roost._engine import LaunchRequest
    from roost._ray_nodes import probe

    cluster = roost.Cluster(num_nodes=4, engine="ray")
    engine = cluster._ray_engine()
    strategy = roost.PackedPlacementStrategy(0, workers - 1)
    environments = engine.environments(LaunchRequest(Adder, (), {}, "bare", strategy.get_placement(cluster)))
    pins = [NodeAffinitySchedulingStrategy(engine.ids[place.cluster_node_rank], soft=False) for place in strategy.get_placement(cluster)]
    found: dict[str, list[float]] = {name: [] for name in ("launch", "bare_launch", "call", "bare_call", "probe", "bare_task")}

    def bare_launch(number: int) -> list[object]:
        cls = ray.remote(Bare)
        actors = [
            cls.options(name=f"bare{number}:{rank}", num_cpus=0, runtime_env={"env_vars": environments[rank][0]}, scheduling_strategy=pins[rank]).remote()
            for rank in range(workers)
        ]  # fmt: skip
        ray.get([actor.add.remote(0) for actor in actors])
        return actors

    def timed(name: str, run: object) -> object:
        start = time.perf_counter()
        value = run()  # type: ignore[operator]
        found[name].append(time.perf_counter() - start)
        return value

    empty = ray.remote(num_cpus=0)(lambda: None)
    asked = ray.remote(num_cpus=0)(probe)
    for number in range(rounds):
        names = ["launch", "bare_launch"] if number % 2 else ["bare_launch", "launch"]
        for name in names:
            if name == "launch":
                group = timed(name, lambda: Adder.create_group().launch(cluster, strategy, name=f"group{number}"))
                for _ in range(200):
                    timed("call", lambda: group.execute_on(0).add(1).wait())  # type: ignore[attr-defined]
                group._close()  # type: ignore[attr-defined]
            else:
                actors = timed(name, lambda: bare_launch(number))
                for _ in range(200):
                    timed("bare_call", lambda: ray.get(actors[0].add.remote(1)))  # type: ignore[index]
                for actor in actors:  # type: ignore[attr-defined]
                    ray.kill(actor)
        for _ in range(20):
            timed("bare_task", lambda: ray.get(empty.options(scheduling_strategy=pins[0]).remote()))
            timed("probe", lambda: ray.get(asked.options(scheduling_strategy=pins[0]).remote()))
    middle = {name: statistics.median(times) for name, times in found.items()}
    return middle | {
        "launch_ratio": middle["launch"] / middle["bare_launch"],
        "call_ratio": middle["call"] / middle["bare_call"],
        "probe_more_ms": 1000 * (middle["probe"] - middle["bare_task"]),
    }


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else 32
    if "ROOST_BENCH_DRIVER" in os.environ:
        print(json.dumps(measure(rounds, workers)))
        return
    from ray_cluster import RayCluster

    with RayCluster(nodes=4, gpus=8) as cluster:
        (cluster.folder / "costed.py").write_text(MODULE)
        cluster.environment["PYTHONPATH"] += f":{cluster.folder}"
        script = f"import runpy, sys; sys.argv = ['ray_cost', '{rounds}', '{workers}']; runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
        done = cluster.run(script, timeout=3600, ROOST_BENCH_DRIVER="1")
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
