"""Programs that launch workers: how they end, what is left of them, and what their forks may do."""

import re
import signal
from pathlib import Path

import pytest

from engine import wait_gone
from worker_home import WorkerHome

SCRIPT = """
    import os, sys
    import roost
    from helping import Number

    LIMIT = 5

    class Script(roost.Worker):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def more(self):
            return Result(helper(self.number.value + self._rank))

    class Result:
        def __init__(self, value):
            self.value = value

    def helper(number):
        return number + LIMIT

    group = Script.create_group(Number(10)).launch(roost.Cluster(num_nodes=1), roost.NodePlacementStrategy([0, 0]))
    results = group.more().wait()
    assert all(type(result) is Result for result in results), results
    print([result.value for result in results], flush=True)
    import atexit
    atexit.register(print, "first to register", flush=True)
"""


@pytest.mark.local  # on Ray: the failing rank's
@pytest.mark.parametrize("warm", ["True", "False"])
def test_classes_of_the_main_script_and_of_modules_beside_it(own_workers: WorkerHome, warm: str) -> None:
    (own_workers.home / "helping.py").write_text(
        "class Number:\n    def __init__(self, value):\n        self.value = value\n"
    )
    done = own_workers.script(SCRIPT.replace("[0, 0]))", f"[0, 0]), warm={warm})"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "[15, 16]\nfirst to register\n", "")
    own_workers.engine.wait_empty()


@pytest.mark.local  # on Ray: the failing rank's and the fork's
@pytest.mark.parametrize(
    ("ending", "status"), [("sys.exit(3)", 3), ("raise ValueError('no')", 1), ("pass", 0), ("os._exit(4)", 4)]
)
def test_the_exit_status_of_a_driver_is_its_own(own_workers: WorkerHome, ending: str, status: int) -> None:
    (own_workers.home / "helping.py").write_text("class Number:\n    value = 1\n    def __init__(self, value): ...\n")
    done = own_workers.script(SCRIPT + f"    {ending}\n")
    assert done.returncode == status and ("first to register" in done.stdout) == (status != 4)
    own_workers.engine.wait_empty()


def test_a_failing_rank_ends_a_script_that_does_not_catch_it_with_1(own_workers: WorkerHome) -> None:
    """And values and exceptions are of the script's own classes, and of a module's beside it."""
    (own_workers.home / "helping.py").write_text(
        "class Number:\n    def __init__(self, value):\n        self.value = value\n"
    )
    done = own_workers.script(
        """
        import roost
        from helping import Number

        class Result:
            def __init__(self, value):
                self.value = value

        class Odd(Exception):
            pass

        class Bad(roost.Worker):
            def __init__(self, number):
                super().__init__()
                self.number = number
            def more(self, result):
                return Number(self.number.value + self._rank), type(result), Result(result.value)
            def run(self):
                if self._rank == 0:
                    raise Odd("it is 0")
                return 1.0

        group = Bad.create_group(Number(10)).launch(roost.Cluster(num_nodes=1), roost.NodePlacementStrategy([0, 0]), name="bad")
        for size in (1, 100_000):
            for number, kind, result in group.more(Result("x" * size)).wait():
                print(number.value, type(number) is Number, kind is Result, type(result) is Result, len(result.value))
        try:
            group.run().wait()
        except roost.WorkerError as error:
            print(error.rank, type(error.__cause__) is Odd, [outcome.value for outcome in error.outcomes])
        group.run().wait()
        """
    )
    said = [f"{10 + rank} True True True {size}\n" for size in (1, 100_000) for rank in range(2)]
    assert (done.returncode, done.stdout) == (1, "".join(said) + "0 True [None, 1.0]\n"), done.stderr
    assert re.search(r"WorkerError: rank 0 of group 'bad' \(node 0.*\) failed in 'run': Odd: it is 0", done.stderr), (
        done.stderr
    )
    own_workers.engine.wait_empty()


@pytest.mark.local  # on Ray: test_ray_engine.py
def test_nothing_is_left_of_a_driver_that_is_killed(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, signal, roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(cluster="1x4"))
        print(*group.pid().wait(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == -signal.SIGKILL
    wait_gone([int(pid) for pid in done.stdout.split()])
    own_workers.engine.wait_empty()


@pytest.mark.local
def test_a_fork_of_the_driver_has_no_groups(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
        import os, sys, roost
        from worker_classes import Helper
        group = Helper.create_group().launch(roost.Cluster(num_nodes=1), roost.NodePlacementStrategy([0, 0]), name="mine")
        pid = os.fork()
        if pid == 0:
            try:
                roost.WorkerGroup.from_group_name(Helper, "mine")
            except roost.EngineError:
                sys.exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        print(group.add(1).wait())
        """,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2, 3]\n", "")


FORKS = """
import os, sys, threading, roost
from worker_classes import Helper
group = Helper.create_group().launch(roost.Cluster(cluster="1x2"), name="mine")
os.mkfifo("pipe")
"""


@pytest.mark.local
def test_a_fork_of_the_driver_takes_no_answers(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        FORKS
        + """
handle = group.hang_on(0, "pipe")
if (pid := os.fork()) == 0:
    for ask in (lambda: handle.wait(30), handle.wait, handle.done, lambda: handle.outcomes, lambda: group.add(1)):
        try:
            ask()
        except RuntimeError as error:
            print(error, flush=True)
    del handle
    os._exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
with open("pipe", "wb") as pipe:
    pipe.write(b"x")
print(handle.wait(60))
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    ours, theirs = (
        "a call belongs to the process that made it, and this is a fork of it\n",
        "a group belongs to the process that launched it, and this is a fork of it\n",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, ours * 4 + theirs + "[0, 1]\n", "")


@pytest.mark.local
def test_a_driver_that_may_not_have_a_connection_to_each_worker_is_told_before_any_starts(
    own_workers: WorkerHome,
) -> None:
    done = own_workers.script(
        """
import os, resource, roost
from worker_classes import Helper
cluster = roost.Cluster(cluster="1x2")
open_now, hard = len(os.listdir("/proc/self/fd")) - 1, resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for limit in (open_now + 30, open_now + 60):
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        print(len(Helper.create_group().launch(cluster, roost.NodePlacementStrategy([0] * 20), name=f"of{limit}").add(1).wait()))
    except roost.EngineError as error:
        print(error)
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 0, done.stderr
    refused, *answers = done.stdout.splitlines()
    assert re.fullmatch(
        r"a group of 20 processes needs \d+ open files here \(one for each, and \d+ are open\), but this process may have \d+ \(raise the limit before it starts: ulimit -Sn \d+\)",
        refused,
    ), refused
    assert answers == ["20"]


@pytest.mark.local
def test_managers_that_may_not_have_every_worker_are_told_of_before_any_starts(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        """
import os, resource, roost
from worker_classes import Helper
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))  # enough for the run and the driver of a group of 60
cluster = roost.Cluster(cluster="1x2")
for count in (60, 4):
    try:
        print(len(Helper.create_group().launch(cluster, roost.NodePlacementStrategy([0] * count), name="of", timeout=20).add(1).wait()))
    except roost.Error as error:
        print(error)
""",
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 0, done.stderr
    refused, *answers = done.stdout.splitlines()
    assert re.fullmatch(
        r"a group of 60 processes needs 136 open files in its managers \(two for each\), but they may have 128 \(raise the hard limit before this process starts: ulimit -Hn 136\)",
        refused,
    ), refused
    assert answers == ["4"]


@pytest.mark.local
def test_a_fork_while_threads_call_can_forget_calls(own_workers: WorkerHome) -> None:
    done = own_workers.script(
        FORKS
        + """
is_over = threading.Event()
def call():
    while not is_over.is_set():
        group.add(1).wait()
threads = [threading.Thread(target=call) for _ in range(2)]
[thread.start() for thread in threads]
for _ in range(50):
    handle = group.add(1)
    if (pid := os.fork()) == 0:
        del handle
        os._exit(0)
    os.waitpid(pid, 0)
is_over.set()
[thread.join() for thread in threads]
print(handle.wait(60))
""",
        PYTHONPATH=str(Path(__file__).parent),
        PYTHONWARNINGS="ignore",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2, 3]\n", "")
