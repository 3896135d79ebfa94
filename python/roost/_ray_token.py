"""The token of a Ray cluster: whether this process has one, and says it. It is never printed.

Ray reads the mode, RAY_AUTH_MODE, once. Where it is not set, Ray itself says a token only to a cluster that it finds by
itself, and then also to one that has none and would not answer with it; here the cluster is asked first."""

import contextlib
import importlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from roost._arguments import fault
from roost._errors import EngineError


log = logging.getLogger("roost")

MODE = "RAY_AUTH_MODE"
ASK_SECONDS = 5.0
NOBODYS_CLUSTER = "ab" * 28  # the id of a cluster that is not there

is_mode_ours = False  # nobody set it before this process joined


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
    if os.environ.get(MODE, "").lower() == "token" and not is_at_hand():
        raise fault(
            EngineError, f"RAY_AUTH_MODE is 'token', but there is no token in {token_path()}",
            hint="RAY_AUTH_TOKEN_PATH names that file: let it name the cluster's token file" if os.environ.get("RAY_AUTH_TOKEN_PATH") else "copy the cluster's token file there, or set RAY_AUTH_TOKEN_PATH to it",
        )  # fmt: skip


def token_hint() -> str:
    """What to do where a cluster refuses this process."""
    mode = os.environ.get(MODE, "")
    if mode.lower() == "disabled":
        return "RAY_AUTH_MODE=disabled says no token: unset it, and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    if mode and mode.lower() != "token":
        return f"RAY_AUTH_MODE is '{mode}', and Ray knows token and disabled: set one of them, or unset it"
    if os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return "it is that of RAY_AUTH_TOKEN here: correct it, or unset it and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    told = "there is none"
    if is_at_hand():
        told = f"it is that of {token_path()}"
    return f"{told} here: set RAY_AUTH_TOKEN_PATH to the cluster's token file, or RAY_AUTH_MODE=disabled where it has none"


@contextlib.contextmanager
def mode_for(address: str | None) -> Iterator[None]:
    """Joining: with the token, where the mode is not set, one is at hand and the cluster there wants it; None = a cluster
    that Ray starts, and chooses the mode for. It stays until `forget_mode`, or until joining fails."""
    global is_mode_ours
    if MODE not in os.environ:
        is_mode_ours = True
        if address is not None and is_at_hand() and wants_token(address):
            os.environ[MODE] = "token"
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
        if os.environ.pop(MODE, None) is not None:
            read_again()


def read_again() -> None:
    """Ray keeps what it has read of the mode and the token."""
    raylet = importlib.import_module("ray._raylet")
    with contextlib.suppress(AttributeError):  # of another Ray than was seen: then it is refused as before
        raylet.Config.initialize("")
        raylet.AuthenticationTokenLoader.instance().reset_cache()


def wants_token(address: str) -> bool:
    """Whether the cluster there refuses who says none. It looks at the token first and at whom it is asked for second, so
    it is asked for another cluster: Ray prints each refusal of who asks which cluster it is."""
    try:
        importlib.import_module("ray._raylet").GcsClient(address=address, cluster_id=NOBODYS_CLUSTER).check_alive([], ASK_SECONDS)
    except Exception as error:
        log.debug("%s, asked without a token: %s", address, error)
        return "authtoken" in str(error).lower()
    return False


@contextlib.contextmanager
def private_token() -> Iterator[None]:
    """A token that Ray makes for a cluster of its own is for this user. Ray lets everybody read it, unless its file is there,
    which it takes for none while it is empty."""
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
    """Whether this process says a token, and wants to hear one."""
    try:
        from ray._private.authentication.authentication_utils import is_token_auth_enabled
    except ImportError:
        return False
    return bool(is_token_auth_enabled())
