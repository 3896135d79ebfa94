"""The only access to Ray: the session that this process has joined, its forks, and the token that it shows to a cluster.

Ray starts or joins a cluster by itself when a program asks it for something and there is none. Between the program's
`ray.shutdown()` and the end of its run that would start a cluster that nobody wants, or try for a minute to reach one that
is gone. So that is switched off for all callers while this process is in a session of roost's. `Session` stands in for the
module `ray`, and refuses calls once its session is over, also when the program has joined another one since."""

import contextlib
import importlib
import logging
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roost._plan.errors import EngineError, fault

log = logging.getLogger("roost")

ASK_NOBODY = ("cloudpickle", "exceptions")  # parts of Ray that work without a cluster

was_starting: bool | None = None  # Ray's own setting; None while it has that


class Session:
    """Ray, for as long as this process is in the session in which this was made."""

    def __init__(self, ray: Any) -> None:
        self._module = ray
        # Every ray.init() makes another object of the node that this process is on, and ray.shutdown() lets go of it. Numbers of
        # jobs do not tell sessions apart: a new cluster begins with the same ones.
        self._node = weakref.ref(ray._private.worker.global_worker.node)

    @property
    def is_joined(self) -> bool:
        node = self._node()
        return node is not None and self._module._private.worker.global_worker.node is node

    def become(self, other: "Session") -> None:
        """Stands for the session of the other from now on."""
        self._node = other._node

    def check(self) -> None:
        if not self.is_joined:
            raise fault(
                EngineError,
                "Ray was shut down in this process, and its run and groups have ended with that",
                hint="make a Cluster and launch its groups again; a run leaves Ray by itself when the program ends",
            )

    def __getattr__(self, name: str) -> Any:
        if name not in ASK_NOBODY:
            self.check()
        return getattr(self._module, name)


def switch() -> Any:
    """Ray's module that starts a cluster where there is none; its functions look at `enable_auto_connect` at each call."""
    return importlib.import_module("ray._private.auto_init_hook")


def forbid_start() -> None:
    """Ray starts nothing by itself until `allow_start`."""
    global was_starting
    if was_starting is None:
        try:
            hook = switch()
            before = bool(hook.enable_auto_connect)
            hook.enable_auto_connect = False
            was_starting = before
        except (ImportError, AttributeError) as error:  # of another Ray than was seen: Session still refuses
            log.debug("this version of Ray cannot be told to start nothing by itself: %s", error)


def allow_start() -> None:
    """As it was before `forbid_start`."""
    global was_starting
    if was_starting is not None:
        switch().enable_auto_connect = was_starting
        was_starting = None


# --- forks: Ray's threads are not in a forked process, so a question to Ray would wait there for ever

joined: int | None = None  # the process that has


def note_join() -> None:
    """This process has joined."""
    global joined
    joined = os.getpid()


def check_joined() -> None:
    if joined is not None and joined != os.getpid():
        raise fault(
            EngineError,
            "this process is a fork of one that has joined Ray, and Ray does not work in a fork",
            hint="start processes with subprocess, or with multiprocessing's spawn",
        )


def check_owner(pid: int, words: str) -> None:
    """As on the local engine."""
    if pid != os.getpid():
        raise RuntimeError(f"{words}, and this is a fork of it")


# --- the token of a Ray cluster. It is never printed.
#
# Ray reads the mode, RAY_AUTH_MODE, once. Where it is not set, Ray shows a token only to a cluster that it finds by itself,
# and then also to one that has no token and would not answer with it. Here the cluster is asked first.

TOKEN_MODE = "RAY_AUTH_MODE"
ASK_SECONDS = 5.0
NOBODYS_CLUSTER = "ab" * 28  # the id of a cluster that is not there

is_mode_ours = False  # roost has set RAY_AUTH_MODE; it was not set before


def token_path() -> Path:
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def is_at_hand() -> bool:
    """Whether there is a token that Ray would find."""
    if os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return True
    try:
        return bool(token_path().read_text().strip())
    except (OSError, ValueError):
        return False


def check_token() -> None:
    """Ray itself ends the process where it is to use a token and has none."""
    if os.environ.get(TOKEN_MODE, "").lower() == "token" and not is_at_hand():
        raise fault(
            EngineError,
            f"RAY_AUTH_MODE is 'token', but there is no token in {token_path()}",
            hint="RAY_AUTH_TOKEN_PATH names that file: let it name the cluster's token file"
            if os.environ.get("RAY_AUTH_TOKEN_PATH")
            else "copy the cluster's token file there, or set RAY_AUTH_TOKEN_PATH to it",
        )


def token_hint() -> str:
    """What to do where a cluster refuses this process."""
    mode = os.environ.get(TOKEN_MODE, "")
    if mode.lower() == "disabled":
        return "RAY_AUTH_MODE=disabled says no token: unset it, and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    if mode and mode.lower() != "token":
        return f"RAY_AUTH_MODE is '{mode}', and Ray knows token and disabled: set one of them, or unset it"
    if os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return "it is that of RAY_AUTH_TOKEN here: correct it, or unset it and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    told = "there is none"
    if is_at_hand():
        told = f"it is that of {token_path()}"
    return (
        f"{told} here: set RAY_AUTH_TOKEN_PATH to the cluster's token file, or RAY_AUTH_MODE=disabled where it has none"
    )


@contextlib.contextmanager
def mode_for(address: str | None) -> Iterator[None]:
    """Joining: with the token, where the mode is not set, one is at hand and the cluster there wants it; None = a cluster
    that Ray starts, and chooses the mode for. It stays until `forget_mode`, or until joining fails."""
    global is_mode_ours
    if TOKEN_MODE not in os.environ:
        is_mode_ours = True
        if address is not None and is_at_hand() and wants_token(address):
            os.environ[TOKEN_MODE] = "token"
            read_again()
    try:
        yield
    except BaseException:
        forget_mode()
        raise


def forget_mode() -> None:
    """The cluster was left: the next one may have another mode."""
    global is_mode_ours
    if is_mode_ours:
        is_mode_ours = False
        if os.environ.pop(TOKEN_MODE, None) is not None:
            read_again()


def read_again() -> None:
    """Ray keeps what it has read of the mode and the token."""
    raylet = importlib.import_module("ray._raylet")
    with contextlib.suppress(AttributeError):  # of another Ray than was seen: then it is refused as before
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def wants_token(address: str) -> bool:
    """Whether the cluster refuses a request without a token. The request names another cluster: the token is checked first, and
    Ray would print a refusal of the usual request."""
    try:
        importlib.import_module("ray._raylet").GcsClient(address=address, cluster_id=NOBODYS_CLUSTER).check_alive(
            [], ASK_SECONDS
        )
    except Exception as error:
        log.debug("%s, asked without a token: %s", address, error)
        return "authtoken" in str(error).lower()
    return False


@contextlib.contextmanager
def private_token() -> Iterator[None]:
    """Keeps a token that Ray makes for its own cluster private to this user. Ray makes the file readable for all, unless it
    exists; an empty file counts as none."""
    path = Path.home() / ".ray" / "auth_token"
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if not path.stat().st_size:  # Ray has made none
                path.unlink()


def has_token() -> bool:
    """Whether this process shows a token, and expects one from others."""
    try:
        from ray._private.authentication.authentication_utils import is_token_auth_enabled
    except ImportError:
        return False
    return bool(is_token_auth_enabled())
