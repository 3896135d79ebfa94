"""Columns are the plan's own memory, and the planner leaves the GIL to others."""

import gc
import sys
import threading

import numpy
import pytest

from roost import Cluster, PackedPlacementStrategy, Placements, _roost
from roost._plan.config import read_config


def placements(count: int = 64) -> Placements:
    return PackedPlacementStrategy(0, count - 1, 2, 2).get_placement(Cluster(cluster=f"{count // 8}x8"))


def address(rows: Placements, name: str) -> int:
    return int(numpy.asarray(rows.column(name)).__array_interface__["data"][0])


def test_columns_hold_what_rows_show() -> None:
    rows = placements()
    for name in (
        "cluster_node_rank",
        "placement_node_rank",
        "local_accelerator_rank",
        "local_rank",
        "local_world_size",
    ):
        assert list(rows.column(name)) == [getattr(row, name) for row in rows]
        assert numpy.asarray(rows.column(name)).tolist() == list(rows.column(name))
    first, held = numpy.asarray(rows.column("first_hardware")), numpy.asarray(rows.column("local_hardware_ranks"))
    assert [held[first[p] : first[p + 1]].tolist() for p in range(len(rows))] == [
        row.local_hardware_ranks for row in rows
    ]
    assert set(rows.column("accelerator_type")) == {1}
    assert rows.columns[0] == "cluster_node_rank" and "first_hardware" in rows.columns


def test_a_column_is_the_plans_own_memory() -> None:
    """The address of every view is the one that the plan in C has for its array."""
    config = read_config("config", {"cluster": {"num_nodes": 1 << 17, "component_placement": {"actor": "all"}}})
    plan = _roost.Plan(config, Cluster(cluster=f"{1 << 17}x8")._value)
    rows = plan.placements("actor")
    assert len(rows) == 1 << 20 and len({address(rows, name) for name in rows.columns}) == len(rows.columns)
    for name in rows.columns:
        assert address(rows, name) == plan.address("actor", name)
    with pytest.raises(KeyError):
        plan.address("actor", "nothing")
    with pytest.raises(KeyError):
        plan.address("nobody", "local_rank")


def test_a_view_is_read_only() -> None:
    rows = placements()
    view = memoryview(rows.column("local_rank"))
    assert (view.format, view.itemsize, view.ndim, view.shape, view.readonly, view.c_contiguous) == (
        "i",
        4,
        1,
        (len(rows),),
        True,
        True,
    )
    assert numpy.frombuffer(view, "int32")[0] == 0
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(ValueError):
        numpy.asarray(rows.column("local_rank"))[0] = 1


def test_a_column_outlives_everything_else() -> None:
    array = numpy.asarray(placements(1 << 16).column("cluster_node_rank"))
    gc.collect()
    assert array[-1] == (1 << 13) - 1


def test_a_writable_buffer_is_refused() -> None:
    with pytest.raises((BufferError, TypeError)):
        (numpy.ctypeslib.ctypes.c_char * 4).from_buffer(placements().column("local_rank"))
    with pytest.raises(KeyError, match="no column 'nothing'"):
        placements().column("nothing")
    with pytest.raises(KeyError):
        placements().column(5)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        placements().column("local_rank")[99]


def test_the_gil_is_released_while_planning() -> None:
    """Nobody is made to give way for a minute: another thread runs only if planning lets go."""
    cluster, strategy = Cluster(cluster=f"{1 << 17}x8"), PackedPlacementStrategy(0, (1 << 20) - 1)
    start, ran = threading.Event(), threading.Event()
    interval = sys.getswitchinterval()
    thread = threading.Thread(target=lambda: (start.wait(), ran.set()))
    thread.start()
    try:
        sys.setswitchinterval(60)
        start.set()
        strategy.get_placement(cluster)
        assert ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
