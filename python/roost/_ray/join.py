"""Joining a Ray cluster, or starting one: version, address, token, namespace, waiting for nodes."""

import contextlib
import fcntl
import importlib
import logging
import os
import socket
import struct
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from roost import _roost
from roost._plan.errors import EngineError, Timeout, fault
from roost._ray.logs import show_every_line
from roost._ray.session import (
    Session,
    allow_start,
    check_token,
    forbid_start,
    forget_mode,
    has_token,
    mode_for,
    private_token,
    token_hint,
)
from roost._work.cluster import Cluster

log = logging.getLogger("roost")

OLDEST = (2, 47)
SAFE = (2, 54)  # below it are faults that let others run code in a cluster
SAY_EVERY = 5.0
POLL_EVERY = 0.2
CONNECT_SECONDS = 10.0
PAGE_SECONDS = 2.0
MANAGERS_GONE = (
    "managers end with node rank 0 and with their driver: groups that run can still be called, new ones need a new run"
)

# <net/if.h>
SIOCGIFFLAGS = 0x8913
UP, LOOPBACK, RUNNING = 0x1, 0x8, 0x40


def version_numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version: (2, 60, 0) of "2.60.0rc1"."""
    found: list[int] = []
    for word in text.split("."):
        digits = word[: len(word) - len(word.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
    return tuple(found)


def load_ray() -> Any:
    """The module, checked."""
    # Every line of every rank is shown, and no GPU asked for hides none.
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray = importlib.import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise fault(
            EngineError, "the engine 'ray' needs Ray, which is not installed", hint="pip install 'ray[default]>=2.47'"
        ) from error
    show_every_line()
    version = version_numbers(ray.__version__)
    if version < OLDEST:
        raise fault(
            EngineError,
            f"Ray {ray.__version__} is too old: the engine 'ray' needs {'.'.join(map(str, OLDEST))} or newer",
            hint="pip install -U 'ray[default]' on every node",
        )
    if version < SAFE:
        log.warning(
            "Ray %s has known security faults: update it to %s or newer on every node",
            ray.__version__,
            ".".join(map(str, SAFE)),
        )
    return ray


# --- which cluster


def is_answering(address: str, timeout: float = CONNECT_SECONDS) -> bool:
    """Whether a process listens at the address."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=timeout):
            return True
    except (OSError, ValueError):
        return False


def is_page(address: str) -> bool:
    """Whether a web server, such as the dashboard, answers at the address. Ray would try for a minute to join it."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as asked:
            asked.settimeout(PAGE_SECONDS)
            asked.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return asked.recv(5) == b"HTTP/"
    except OSError:  # also of one that waits for more, or hangs up
        return False


def own_cluster() -> str | None:
    """The address of a living cluster that this user started on this machine, as Ray notes it down."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"  # as Ray chooses it
    note = Path(folder) / "ray" / "ray_current_cluster"
    try:
        if note.stat().st_uid != os.getuid():
            return None
        address = note.read_text().strip()
    except OSError:
        return None
    return address if address and is_answering(address) else None


def page_fault(address: str, source: str) -> EngineError:
    return fault(
        EngineError,
        f"{source} is '{address}', which is a web server's and not the Ray cluster's",
        hint="the dashboard has an address of its own: give the one of the head, which `ray start --head` printed (port 6379 unless another was chosen)",
    )


def find_address(configured: str | None, say: Callable[[str], None] | None = log.warning) -> str | None:
    """The address of the cluster to join; None = start one. `say` reports that: the user may not expect it."""
    for source, address in (("roost.ray.address", configured), ("RAY_ADDRESS", os.environ.get("RAY_ADDRESS"))):
        if not address:
            continue
        if address == "local":
            return None
        if address == "auto":
            found = own_cluster()
            if found:
                return found
            raise fault(
                EngineError,
                f"{source} is 'auto', but no Ray cluster of this user runs on this machine",
                hint="start one with `ray start --head`, or name its address",
            )
        if address.startswith(("http://", "https://")):
            raise page_fault(address, source)
        if "://" in address:  # Ray's tables, which much is asked of, are not to be had through a client
            raise fault(
                EngineError,
                f"{source} is '{address}', but a cluster is joined as one of its nodes, and not through Ray's client",
                hint="give the address host:port of the cluster's head, and run on one of its nodes",
            )
        if not address.rpartition(":")[2].isdecimal():
            raise fault(
                EngineError,
                f"{source} is '{address}', which names no port",
                hint="give the address host:port that `ray start --head` printed (port 6379 unless another was chosen)",
            )
        if not is_answering(address):
            raise fault(
                EngineError,
                f"nobody answers at {address}, which {source} names as the Ray cluster",
                hint="is it running, and is this the address that `ray start --head` printed?",
            )
        if is_page(address):
            raise page_fault(address, source)
        return address
    found = own_cluster()
    if found is None and say:
        say(
            "no Ray cluster of this user was found here and RAY_ADDRESS is not set: one is started, for this program alone"
        )
    return found


@contextlib.contextmanager
def plain_errors(where: str) -> Iterator[None]:
    """Turns Ray's errors about a cluster that cannot be joined into one line, without the token."""
    try:
        yield
    except _roost.Error:
        raise
    except Exception as error:
        words = str(error).strip()
        kind = type(error).__name__
        # A process listens there, as is known: Ray reports a refusal and a silence in the same words.
        is_refused = isinstance(error, ConnectionError) or "uthenticat" in kind + words or "token" in words.lower()
        if is_refused:
            raise fault(
                EngineError,
                f"the Ray cluster {where} does not accept this process: its token is missing or wrong, or it is no Ray cluster",
                hint=token_hint(),
            ) from error
        line = words.splitlines()[0] if words else kind
        raise fault(
            EngineError,
            f"cannot join the Ray cluster {where}: {line}",
            hint="is this the address that `ray start --head` printed, and not that of its dashboard? `ray status` there tells how it is",
        ) from error


@contextlib.contextmanager
def told(ray: Any, what: str, hint: str, seconds: float | None = None) -> Iterator[None]:
    """What Ray raises, in one line that begins with `what`; our own errors stay what they are, also from an actor. `seconds` is
    how long is waited."""
    try:
        yield
    except (ray.exceptions.RayError, ValueError) as error:  # Ray raises ValueError for an unknown actor
        cause = getattr(error, "cause", None)
        if isinstance(cause, _roost.Error):
            raise cause from None
        if isinstance(error, _roost.Error):
            raise
        is_late = isinstance(error, ray.exceptions.GetTimeoutError)
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if is_late:
            raise fault(
                Timeout, what if seconds is None else f"{what}, after {seconds:g} seconds", hint=hint
            ) from error
        raise fault(EngineError, f"{what}: {line}", hint=hint) from error


def connect(ray: Any, address: str | None, namespace: str) -> Session:
    """Joins, or starts a cluster of this machine alone. What is asked of it is asked of the session that is returned."""
    settings: dict[str, Any] = {"namespace": namespace, "logging_level": logging.WARNING}
    if sys.flags.safe_path:
        # Ray has every worker look for modules in the driver's current folder first. A driver that does not look there itself
        # (python -P, as the program starts it) trusts no file there. Ray leaves that out for jobs that come through its client.
        settings["job_config"] = ray.job_config.JobConfig(_client_job=True)
    if address is None:
        with plain_errors("of this machine"), private_token(), mode_for(None):
            ray.init(address="local", include_dashboard=False, **settings)
    else:
        check_token()
        with plain_errors(f"at {address}"), mode_for(address):
            knock(ray, address)
            ray.init(address=address, **settings)
    forbid_start()
    return Session(ray)


def leave(session: Session) -> None:
    """The process is as it was before it joined. A session that the program has ended itself is not ended again: another one may
    have taken its place."""
    if session.is_joined:
        session.shutdown()
    allow_start()
    forget_mode()


def rejoin(session: Session, address: str, namespace: str) -> None:
    """Joins in another namespace. The session object stays the same for its users."""
    leave(session)
    session.become(connect(session._module, address, namespace))


def knock(ray: Any, address: str) -> None:
    """One question with the token: ray.init() would ask twenty times, and print each refusal."""
    try:
        importlib.import_module("ray._raylet").GcsClient(address=address)
    except ray.exceptions.RayError:
        raise
    except Exception as error:  # of another Ray than was seen: then it is asked by ray.init()
        log.debug("cannot ask %s before joining: %s", address, error)


def state() -> Any:
    """Ray's tables of actors, jobs and resources. There is no public name for what is needed of them here."""
    return importlib.import_module("ray._private.state")


def again(method: Any) -> Any:
    """A method of an actor that may run twice: Ray repeats the call when the request or the answer was lost, for as long as the
    actor lives. The caller's timeout is the limit: a number of tries would run out by bad luck."""
    return method.options(max_task_retries=-1)


def is_taken(ray: Any, error: BaseException) -> bool:
    """Whether Ray refuses to make an actor as another one has its name."""
    kind = getattr(ray.exceptions, "ActorAlreadyExistsError", None)  # before 2.48 a ValueError like any other
    return isinstance(error, kind) if kind else isinstance(error, ValueError) and "already exists" in str(error)


def refuse_initialised(ray: Any) -> None:
    if ray.is_initialized():
        raise fault(
            EngineError,
            "Ray was initialised before the Cluster, with a namespace and settings that are not roost's",
            hint="do not call ray.init(): the Cluster does it",
        )


def warn_open(ray: Any) -> None:
    """Ray's own ports listen on every interface: without a token, any host that reaches them can run code."""
    if not has_token() and (
        not all(is_loopback(node["NodeManagerAddress"]) for node in alive_nodes(ray)) or has_other_hosts()
    ):
        log.warning(
            "this Ray cluster has no token: any host that reaches it can run programs as you "
            "(start its nodes with RAY_AUTH_MODE=token, or keep its ports closed to others)"
        )


def is_loopback(address: str) -> bool:
    return address.startswith("127.") or address in ("::1", "localhost")


def has_other_hosts() -> bool:
    """Whether this machine has an interface, up and with something at its other end, that is not its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        return any(
            flags_of(asker, name) & (UP | LOOPBACK | RUNNING) == UP | RUNNING for _, name in socket.if_nameindex()
        )


def flags_of(asker: socket.socket, interface: str) -> int:
    request = struct.pack("40s", os.fsencode(interface))  # struct ifreq: its name, then its flags
    try:
        return int(struct.unpack_from("16xH", fcntl.ioctl(asker, SIOCGIFFLAGS, request))[0])
    except OSError:  # it has just gone
        return 0


# --- its nodes


def alive_nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def check_alive(
    ray: Any,
    words_of_node: Mapping[str, str],
    hint: str = "`ray status` lists the nodes; its ranks are never moved to another",
) -> None:
    """Nodes by Ray's id."""
    alive = {node["NodeID"] for node in alive_nodes(ray)}
    for node, words in words_of_node.items():
        if node not in alive:
            raise fault(EngineError, f"{words} is lost: Ray knows it no more", hint=hint)


def node_words(node: dict[str, Any]) -> str:
    resources = node["Resources"]
    return f"{node['NodeManagerAddress']} ({resources.get('GPU', 0):g} GPU, {resources.get('CPU', 0):g} CPU)"


def wait_for_nodes(
    ray: Any, count: int, timeout: float, address: str, say: Callable[[str], None] = log.warning
) -> list[dict[str, Any]]:
    """Waits until `count` nodes are alive and returns them. Reports every five seconds what is missing."""
    start = time.monotonic()
    said = start
    while True:
        nodes = alive_nodes(ray)
        if len(nodes) >= count:
            return nodes
        now = time.monotonic()
        there = ", ".join(sorted(map(node_words, nodes))) or "none"
        missing = f"{count - len(nodes)} of {count} nodes are missing; there: {there}"
        cure = f"on each missing node: {'RAY_AUTH_MODE=token ' if has_token() else ''}ray start --address={address}"
        if now - start >= timeout:
            raise fault(Timeout, f"{missing}, after {timeout:g} seconds", hint=cure)
        if now - said >= SAY_EVERY:
            said = now
            say(f"waiting for nodes: {missing} ({cure}); {start + timeout - now:.0f} seconds are left")
        time.sleep(min(POLL_EVERY, max(0.0, start + timeout - now)))


def namespaces_with(ray: Any, names: Collection[str]) -> set[str]:
    """Namespaces where an actor has one of these names."""
    return {entry["namespace"] for entry in ray.util.list_named_actors(all_namespaces=True) if entry["name"] in names}


def running_namespaces(ray: Any) -> set[str]:
    """Where a run is: its NodeManager comes last. Other programs have actors of that name, RLinf is one."""
    return {namespace for namespace in namespaces_with(ray, {"NodeManager"}) if is_ours(ray, namespace)}


def is_ours(ray: Any, namespace: str) -> bool:
    try:
        return hasattr(ray.get_actor("NodeManager", namespace=namespace), "describe")
    except ValueError:  # it has just ended
        return False


def next_namespace(taken: set[str]) -> str:
    """roost, roost_1, ...: the first that no run has."""
    number = 0
    while (name := f"{Cluster.NAMESPACE}_{number}" if number else Cluster.NAMESPACE) in taken:
        number += 1
    return name


def inside_ray() -> Session | None:
    """The session of Ray that this process already belongs to; None when there is none."""
    ray = sys.modules.get("ray")
    return Session(ray) if ray is not None and ray.is_initialized() else None


# --- its processes


def who_asks(ray: Any) -> str:
    """This process for Ray, which knows when it has ended."""
    context = ray.get_runtime_context()
    actor = context.get_actor_id()
    return f"actor:{actor}" if actor else f"job:{context.get_job_id()}"


def ended(watched: set[str]) -> set[str]:
    """Those that Ray knows to have ended."""
    try:
        dead = (
            {f"job:{entry['JobID']}" for entry in state().jobs() if entry.get("IsDead")}
            if any(who.startswith("job:") for who in watched)
            else set()
        )
        for who in watched:
            kind, _, number = who.partition(":")
            if kind == "actor" and (entry := state().actors(number)) and entry.get("State") == "DEAD":
                dead.add(who)
    except Exception:  # the control store does not answer: nothing is known
        return set()
    return watched & dead
