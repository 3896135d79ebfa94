"""What a worker knows of itself, and the managers of it: fields, devices, robots, names, locks, ports; on each engine."""

import gc

import pytest

import roost
from worker_classes import Helper
from worker_home import WorkerHome

ROBOTS = {
    "cluster": {
        "num_nodes": 2,
        "node_groups": [
            {"label": "a800", "node_ranks": "0-1"},
            {
                "label": "robot",
                "node_ranks": 1,
                "hardware": {
                    "type": "Franka",
                    "configs": [{"node_rank": 1, "robot_ip": f"10.0.0.{i}"} for i in (1, 2)],
                },
            },
        ],
        "component_placement": {"env": {"node_group": "robot", "placement": "0-1"}},
    }
}


def test_every_field_is_set(workers: WorkerHome) -> None:
    strategy = roost.PackedPlacementStrategy(2, 5, num_hardware_per_process=2)
    with Helper.create_group().launch(workers.cluster("2x4 A800"), strategy, "fields") as group:
        first, second = group.fields().wait()
        port = first.pop("port")
        assert second.pop("port") == port and 1024 <= port < 65536
        assert first == {
            "_rank": 0,
            "_world_size": 2,
            "_worker_name": "fields:0",
            "_group_name": "fields",
            "_cluster_node_rank": 0,
            "_node_local_rank": 0,
            "_node_local_world_size": 1,
            "_local_rank": 0,
            "_local_world_size": 1,
            "_local_accelerator_rank": 2,
            "_local_hardware_ranks": [2, 3],
            "_node_group": "cluster",
            "_accelerator_type": roost.AcceleratorType.NV_GPU,
            "_accelerator_model": "NV_GPU:A800",
            "_master_address": "127.0.0.1" if workers.name == "local" else "127.0.0.2",
            "_isolate_gpu": True,
            "global_accelerator_ids": [2, 3],
            "accelerator_type": roost.AcceleratorType.NV_GPU,
            "torch_device_type": "cuda",
            "hardware_type": "Accelerator",
            "hardware_infos": [roost.HardwareInfo("Accelerator", "NV_GPU:A800")] * 2,
            "has_accelerator": True,
            "text": "fields(rank=0)",
        }
        assert (second["_cluster_node_rank"], second["_local_hardware_ranks"], second["global_accelerator_ids"]) == (
            1,
            [0, 1],
            [4, 5],
        )
        one, two = group.environment().wait()
        assert (one["CUDA_VISIBLE_DEVICES"], two["CUDA_VISIBLE_DEVICES"]) == ("2,3", "0,1")
        assert (one["RANK"], two["RANK"], one["WORLD_SIZE"], one["GROUP_NAME"], two["WORKER_NAME"]) == (
            "0",
            "1",
            "2",
            "fields",
            "fields:1",
        )


BAD_NAMES = {
    "": "''",
    "/tmp/abs_evil": "'/tmp/abs_evil'",
    "../evil": "'../evil'",
    "a b": "'a b'",
    "a:0": "'a:0'",
    "x" * 64: "'x",
    "a\x1b[31mb": r"'a\\x1b\[31mb'",
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_cannot_be_a_folder_is_refused_before_anything_starts(workers: WorkerHome, name: str) -> None:
    before = workers.engine.runs() if workers.name == "local" else []
    with pytest.raises(roost.Error, match=rf"{BAD_NAMES[name]}.* cannot be the name of a group") as caught:
        Helper.create_group().launch(workers.cluster("1x1"), name=name)
    assert caught.value.code == "name"
    assert before == (workers.engine.runs() if workers.name == "local" else [])


def test_a_class_whose_name_is_too_long_for_a_default_is_told_to_name_its_group(workers: WorkerHome) -> None:
    long = type("L" * 51, (Helper,), {})
    with pytest.raises(
        roost.Error,
        match=f"a group of {'L' * 51} needs a name: 'worker_group_{'L' * 51}' cannot be one .pass one to launch",
    ) as caught:
        long.create_group().launch(workers.cluster("1x1"))
    assert caught.value.code == "name"


def test_without_isolation_all_devices_are_shown(workers: WorkerHome) -> None:
    for words in ({"isolate_gpu": False}, {"isolate_accelerator": False}):
        with Helper.create_group().launch(workers.cluster("1x4"), name="shared", **words) as group:
            assert group.visible().wait() == [4, 4, 4, 4]
            fields = group.fields().wait()
            assert [(one["_local_rank"], one["_isolate_gpu"], one["global_accelerator_ids"]) for one in fields] == [
                (r, False, [0, 1, 2, 3]) for r in range(4)
            ]


def test_the_defaults_are_those_of_the_reference(workers: WorkerHome) -> None:
    with Helper.create_group().launch(workers.cluster("2x2")) as group:
        fields = group.fields().wait()
        assert [(one["_group_name"], one["_local_hardware_ranks"]) for one in fields] == [
            ("worker_group_Helper", [number % 2]) for number in range(4)
        ]
        assert group.visible().wait() == [1, 1, 1, 1]
    with Helper.create_group().launch(workers.cluster("2x0")) as group:
        [only] = group.fields().wait()
        assert (
            only["_cluster_node_rank"],
            only["_world_size"],
            only["has_accelerator"],
            only["torch_device_type"],
        ) == (0, 1, False, "cpu")
        assert (only["hardware_type"], only["hardware_infos"], only["global_accelerator_ids"]) == (None, [], [])


def test_robots_are_told_to_their_workers(workers: WorkerHome) -> None:
    cluster = workers.cluster("2x2", cluster_cfg=ROBOTS)
    strategy = roost.ComponentPlacement(ROBOTS, cluster).get_strategy("env")
    with Helper.create_group().launch(cluster, strategy, "env") as group:
        fields = group.fields().wait()
        assert [(one["_node_group"], one["hardware_type"], one["_cluster_node_rank"]) for one in fields] == [
            ("robot", "Franka", 1)
        ] * 2
        assert [[info.config["robot_ip"] for info in one["hardware_infos"]] for one in fields] == [
            ["10.0.0.1"],
            ["10.0.0.2"],
        ]


# --- managers


def test_workers_are_known_to_the_managers(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("2x2 A800"), name="known") as group:
        info = roost.WorkerManager.get_proxy().get_worker_info(roost.WorkerAddress("known", 3))
        assert info is not None
        assert (info.rank, info.group_world_size, info.cluster_node_rank, info.accelerator_rank) == (3, 4, 1, 1)
        assert (info.accelerator_type, info.accelerator_model, info.available_accelerators) == (
            "NV_GPU",
            "NV_GPU:A800",
            [3],
        )
        assert info.hardware_infos == [roost.HardwareInfo("Accelerator", "NV_GPU:A800")]
        assert group.execute_on(0).find("known:3").wait() == [info]
        first = roost.WorkerManager.get_proxy().get_worker_info("known:0")
        assert first is not None and first.node_port == group.fields().wait()[0]["port"]
        assert group.children().wait() == [
            [f"known:{rank}:0", f"known:{rank}:1", f"known:{rank}(rank=1)"] for rank in range(4)
        ]
        assert group.execute_on(1).find("known:2:1").wait()[0].rank == 1


def test_managers_live_as_long_as_a_group_whoever_has_its_cluster(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x2"), name="kept") as group:
        gc.collect()  # nobody else has the cluster
        assert group.execute_on(0).find("kept:1").wait()[0].rank == 1
    again = own_workers.cluster("1x2")
    with Helper.create_group().launch(again, name="kept") as group:
        assert group.execute_on(1).find("kept:0").wait()[0].rank == 0


def test_one_worker_at_a_time_has_the_devices(own_workers: WorkerHome) -> None:
    """Both hold the same device; what they write down never interleaves."""
    notes = own_workers.home / "notes"
    notes.touch()
    strategy = roost.FlexiblePlacementStrategy([[0], [0], [0]])
    with Helper.create_group().launch(own_workers.cluster("1x1"), strategy, "locked") as group:
        group.use_devices(str(notes), 20).wait(60)
    lines = notes.read_text().split()
    assert len(lines) == 120 and all(begin == end for begin, end in zip(lines[::2], lines[1::2]))


def test_ports_are_given_to_one_worker_each(own_workers: WorkerHome) -> None:
    with Helper.create_group().launch(own_workers.cluster("1x4"), name="ports") as group:
        ports = [port for one in group.ports(5, 30000).wait() for port in one]
        assert len(set(ports)) == 20 and all(1024 <= port <= 30000 for port in ports)
        with pytest.raises(roost.WorkerError, match="max_port_num is 80, but ports for workers start at 1024"):
            group.ports(1, 80).wait()
