"""Every placement example of the seed documents works as its text says.

tests/seeds/<seed>/ holds the examples, typed in; where one is incomplete a comment in it says how it
was completed. The assertions are read from the seeds' texts, not from the program.
"""

import json
import subprocess
from typing import Any

from transcripts import ROOST, ROOT

SEEDS = ROOT / "tests" / "seeds"
SEED_000, SEED_001, SEED_002 = "000_7abe36f9418ee2f5", "001_17cd740334cacf71", "002_ad73076d06502346"

Process = dict[str, Any]


def run(command: str, seed: str, name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOST, command, "--json", name, *words], cwd=SEEDS / seed, env={}, capture_output=True, text=True, timeout=60
    )


def plan(seed: str, name: str, *words: str) -> dict[str, list[Process]]:
    """The processes of every component."""
    done = run("plan", seed, name, *words)
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    for component in document["components"]:
        assert [process["rank"] for process in component["processes"]] == list(range(component["world_size"]))
    return {component["name"]: component["processes"] for component in document["components"]}


def held(processes: list[Process]) -> list[list[int]]:
    """What each process holds, in the numbering of its node."""
    return [process["local_hardware_ranks"] for process in processes]


def nodes(processes: list[Process]) -> list[int]:
    return [process["cluster_node_rank"] for process in processes]


def test_000_short_form_makes_eight_processes_of_each_component_on_resources_0_to_7() -> None:
    components = plan(SEED_000, "basic-short-form.yaml", "--cluster", "1x8")
    assert list(components) == ["actor", "inference"]
    for processes in components.values():
        assert held(processes) == [[i] for i in range(8)]


def test_000_node_group_form() -> None:
    components = plan(SEED_000, "node-group-form.yaml")
    # "actor uses accelerators 0-8 of node group a800": one process on each of nine.
    assert held(components["actor"]) == [[i] for i in range(8)] + [[0]]
    assert nodes(components["actor"]) == [0] * 8 + [1]
    # "rollout uses accelerators 0-8 of node group 4090".
    assert held(components["rollout"]) == [[i] for i in range(8)] + [[0]]
    assert nodes(components["rollout"]) == [2] * 8 + [3]
    assert {process["node_group_label"] for process in components["rollout"]} == {"4090"}
    # "env uses robots 0-3; processes 0-7 are spread evenly over them (2 a robot)".
    assert nodes(components["env"]) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert held(components["env"]) == [[0]] * 8
    # "agent: processes 0-200 on nodes 0-1, processes 201-511 on nodes 2-3", as evenly as can be.
    placed = nodes(components["agent"])
    assert set(placed[:201]) == {0, 1} and set(placed[201:]) == {2, 3} and len(placed) == 512
    assert [placed.count(node) for node in range(4)] == [101, 100, 156, 155]
    assert held(components["agent"]) == [[]] * 512


def test_000_implicit_processes_follow_each_other() -> None:
    # "the first part stands for processes 0-3, the second for processes 4-7".
    assert held(plan(SEED_000, "implicit-processes.yaml", "--cluster", "1x8")["actor"]) == [[i] for i in range(8)]


def test_000_and_001_explicit_and_implicit_processes_mix() -> None:
    for cluster, overrides in ("1x12", []), ("2x8", ["cluster.num_nodes=2"]):
        processes = plan(SEED_000, "mixed-processes.yaml", "--cluster", cluster, *overrides)["actor"]
        first_of_node = {node: node * int(cluster.split("x")[1]) for node in range(2)}
        resources = [
            first_of_node[process["cluster_node_rank"]] + process["local_hardware_ranks"][0] for process in processes
        ]
        assert resources[0:4] == [0, 0, 1, 1]  # "processes 0-3 evenly on resources 0-1"
        assert resources[4:7] == [3, 4, 5]  # "processes 4-6 implicitly on resources 3-5"
        assert resources[7:15] == [7, 7, 8, 8, 9, 9, 10, 10]  # "processes 7-14 evenly on resources 7-10"
        assert len(processes) == 15


def test_000_conf_yaml_starts_one_process_on_each_of_accelerators_0_to_3() -> None:
    processes = plan(SEED_000, "conf.yaml", "--cluster", "1x8 A800")["test_worker"]
    assert held(processes) == [[0], [1], [2], [3]]
    assert nodes(processes) == [0] * 4
    assert {process["node_group_label"] for process in processes} == {"a800"}
    # "hides accelerators that were not given to the worker".
    assert [process["visible_accelerators"] for process in processes] == [["0"], ["1"], ["2"], ["3"]]


def test_000_process_ranks_must_be_continuous_and_unique() -> None:
    for text in "0-1:0-1,2-3:3-4", "0-1:0-1,2-3:1-2", "0-1:1-2":
        done = run(
            "check", SEED_000, "mixed-processes.yaml", "--cluster", "1x12", f"cluster.component_placement.actor={text}"
        )
        assert (done.returncode, [error["code"] for error in json.loads(done.stdout)["errors"]]) == (3, ["rank"])


def test_000_counts_must_be_multiples_of_each_other() -> None:
    done = run(
        "check", SEED_000, "mixed-processes.yaml", "--cluster", "1x12", "cluster.component_placement.actor=0-2:0-1"
    )
    assert done.returncode == 3 and "one count must be a multiple of the other" in done.stdout


def test_000_process_ranks_cannot_be_all() -> None:
    done = run(
        "check", SEED_000, "mixed-processes.yaml", "--cluster", "1x12", "cluster.component_placement.actor=0-2:all"
    )
    assert done.returncode == 3 and "cannot be 'all'" in done.stdout


def test_001_components_straight_under_cluster_are_shown_where_they_go() -> None:
    done = run("check", SEED_001, "simple-example.yaml", "--cluster", "1x8")
    errors = {(error["line"], error["column"]): error for error in json.loads(done.stdout)["errors"]}
    assert done.returncode == 3
    assert "component_placement" in errors[3, 5]["hint"] and "actor,inference" in errors[3, 5]["hint"]


def test_001_simple_example_with_its_key() -> None:
    # "both the actor and inference groups' process 0-7 evenly occupy accelerator 0 to 7".
    components = plan(SEED_001, "simple-example-completed.yaml", "--cluster", "1x8")
    assert {name: held(processes) for name, processes in components.items()} == {
        name: [[i] for i in range(8)] for name in ("actor", "inference")
    }


def test_001_complex_example_as_printed_is_shown_its_indentation() -> None:
    done = run("check", SEED_001, "complex-example.yaml", "--cluster", "4x8")
    (error,) = json.loads(done.stdout)["errors"]
    assert done.returncode == 3 and "component_placement" in error["hint"] and "indent" in error["hint"]


def test_001_processes_are_evenly_assigned() -> None:
    components = plan(SEED_001, "evenly-shared.yaml", "--cluster", "1x8")
    assert held(components["shared"]) == [[0], [0], [1], [1], [2], [2], [3], [3]]  # "2 processes sharing 1 resource"
    assert held(components["each"]) == [[0], [1], [2], [3], [4]]  # "process 0-4 ... to resource ranks 0-4 respectively"
    assert held(components["blocks"]) == [[0, 1], [2, 3], [4, 5], [6, 7]]  # "one process occupy multiple resources"
    assert held(components["everything"]) == [[i] for i in range(8)]


def test_001_hardware_ranks_span_several_groups_in_order() -> None:
    components = plan(SEED_001, "several-node-groups.yaml", "--cluster", "1x8 A800,1x8 RTX-4090")
    for name in "as_text", "as_list":
        # "hardware ranks 0-7 belong to a800 and ranks 8-15 belong to 4090".
        assert [process["node_group_label"] for process in components[name]] == ["a800"] * 8 + ["4090"] * 8
        assert held(components[name]) == [[i % 8] for i in range(16)]
    assert [(process["node_group_label"], process["local_hardware_ranks"]) for process in components["across"]] == [
        ("a800", [7]),
        ("4090", [0]),
    ]
    assert held(components["one_process_across"]) == [[4, 5, 6, 7], [0, 1, 2, 3]]
    # "hardware ranks within a single process must all be ... on the same node".
    done = run(
        "check",
        SEED_001,
        "several-node-groups.yaml",
        "--cluster",
        "2x8",
        "cluster.component_placement.across.placement=7-8:0",
    )
    assert done.returncode == 4 and "same node" in done.stdout


def test_001_what_a_resource_rank_counts() -> None:
    components = plan(SEED_001, "what-a-resource-is.yaml")
    assert (nodes(components["on_accelerators"]), held(components["on_accelerators"])) == (
        [0, 0, 1, 1],
        [[0], [1], [0], [1]],
    )
    assert (nodes(components["on_nodes"]), held(components["on_nodes"])) == ([2], [[]])
    assert (nodes(components["on_robots"]), held(components["on_robots"])) == ([0, 2], [[0], [0]])
    # "a node label is reserved ... for allocating on node ranks only (no accelerators or other hardware)".
    assert (nodes(components["on_any_node"]), held(components["on_any_node"])) == ([0, 1, 2], [[], [], []])


def test_001_collocated_components_share_all_and_rollout_is_strided() -> None:
    done = run("plan", SEED_001, "model-parallel-collocated.yaml", "--mode", "model-parallel")
    document = json.loads(done.stdout)
    components = {component["name"]: component["processes"] for component in document["components"]}
    assert document["mode"] == "collocated"
    assert held(components["actor"]) == [[0], [1], [2], [3]]
    assert held(components["rollout"]) == [[0, 2], [1, 3]]


def test_001_disaggregated_components_have_their_own() -> None:
    done = run("plan", SEED_001, "model-parallel-disaggregated.yaml", "--mode", "model-parallel")
    document = json.loads(done.stdout)
    components = {component["name"]: component["processes"] for component in document["components"]}
    assert document["mode"] == "disaggregated"
    assert held(components["actor"]) == [[0], [1], [2], [3]]
    assert held(components["rollout"]) == [[4], [5]]
    assert held(components["inference"]) == [[6], [7]]


def test_001_model_parallel_ranks_must_be_continuous() -> None:
    done = run(
        "check",
        SEED_001,
        "model-parallel-disaggregated.yaml",
        "--mode",
        "model-parallel",
        "cluster.component_placement.actor=0,2-3",
    )
    assert done.returncode == 3 and "must be contiguous" in done.stdout


def test_002_packed_takes_every_stride_th_accelerator_of_a_block() -> None:
    components = plan(SEED_002, "packed.yaml", "--mode", "model-parallel")
    # "[0, 1, 2, 3] with stride = 2 gives [0, 2]"; the next block is on the next node.
    assert held(components["rollout"]) == [[0, 2], [1, 3], [0, 2], [1, 3]]
    assert nodes(components["rollout"]) == [0, 0, 1, 1]
    # "stride = 1": one after the other, node by node.
    assert held(components["actor"]) == [[0], [1], [2], [3]] * 2
    # "local_rank: its number on this node; local_world_size: all workers of this node".
    assert [process["local_rank"] for process in components["actor"]] == [0, 1, 2, 3] * 2
    assert {process["local_world_size"] for process in components["actor"]} == {4}
    # "with isolate_gpu it sees only the accelerators of its own".
    assert [process["visible_accelerators"] for process in components["rollout"]] == [["0", "2"], ["1", "3"]] * 2


def test_002_packed_needs_whole_blocks() -> None:
    # "total_GPUs % (num_gpus_per_process x stride) == 0".
    done = run("check", SEED_002, "packed.yaml", "--mode", "model-parallel", "--cluster", "2x3")
    assert done.returncode == 3
    assert any("multiple" in error["message"] for error in json.loads(done.stdout)["errors"])


def test_002_a_process_does_not_leave_its_node() -> None:
    # "so that every process has a whole block and none spans nodes".
    done = run("check", SEED_002, "packed.yaml", "--mode", "model-parallel", "--cluster", "1x2,1x6")
    assert done.returncode == 4 and "same node" in done.stdout


def test_002_without_isolation_a_worker_sees_its_whole_node_and_knows_its_own() -> None:
    processes = plan(SEED_002, "packed.yaml", "--mode", "model-parallel", "--no-isolate")["actor"]
    assert [process["local_accelerator_rank"] for process in processes] == [0, 1, 2, 3] * 2
    assert all(process["visible_accelerators"] == ["0", "1", "2", "3"] for process in processes)
