"""The token of a Ray cluster, without a cluster: whether there is one, whether it is said, who may read it. Clusters with
one and without are joined in test_ray_join.py and test_ray_faults.py."""

import os
from pathlib import Path

import pytest

import roost
from roost._ray import join as ray_join
from roost._ray import session as ray_session

pytestmark = pytest.mark.ray


def test_a_token_that_is_to_be_used_and_is_not_there_is_said_before_ray_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    ray_session.check_token()  # none is wanted
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with pytest.raises(
        roost.EngineError,
        match=rf"RAY_AUTH_MODE is 'token', but there is no token in {tmp_path}/.ray/auth_token \(copy the cluster's token file there",
    ):
        ray_join.connect(None, "127.0.0.1:1", "roost")
    (tmp_path / "token").touch()
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    with pytest.raises(
        roost.EngineError, match=rf"no token in {tmp_path}/token \(RAY_AUTH_TOKEN_PATH names that file: let it name"
    ):
        ray_session.check_token()
    (tmp_path / "token").write_text("f" * 64)
    ray_session.check_token()
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "f" * 64)
    ray_session.check_token()


def test_the_mode_is_chosen_for_one_cluster_where_nobody_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(ray_session, "wants_token", lambda address: asked.append(address) or address == "closed")  # type: ignore[func-returns-value]
    monkeypatch.setattr(ray_session, "read_again", lambda: None)
    for mode, token, address, expected in (
        (None, "f" * 64, "closed", "token"),
        (None, "f" * 64, "open", None),
        (None, "", "closed", None),  # it is refused, in words of its own
        ("disabled", "f" * 64, "closed", "disabled"),
        ("token", "f" * 64, "open", "token"),
    ):
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/not/there")
        monkeypatch.setenv("RAY_AUTH_TOKEN", token)
        monkeypatch.setenv("RAY_AUTH_MODE", mode or "")
        if mode is None:
            monkeypatch.delenv("RAY_AUTH_MODE")
        with ray_session.mode_for(address):
            pass
        assert os.environ.get("RAY_AUTH_MODE") == expected, (mode, address)
        ray_session.forget_mode()
        assert os.environ.get("RAY_AUTH_MODE") == mode, address
        with pytest.raises(ValueError, match="refused"), ray_session.mode_for(address):
            raise ValueError("refused")
        assert os.environ.get("RAY_AUTH_MODE") == mode, address
    assert asked == ["closed", "closed", "open", "open"]  # who has no token, or knows the mode, asks nobody


def test_a_token_that_ray_makes_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From its first byte. What was there before is as somebody wanted it, and what Ray does not make is not there."""
    from ray._private.authentication.authentication_token_setup import generate_and_save_token

    monkeypatch.setenv("HOME", str(tmp_path))
    token = tmp_path / ".ray" / "auth_token"
    with ray_session.private_token():
        pass
    assert not token.exists()
    with ray_session.private_token():
        assert (
            token.stat().st_mode & 0o777 == 0o600
            and token.parent.stat().st_mode & 0o777 == 0o700
            and not ray_session.is_at_hand()
        )
        generate_and_save_token()
    assert token.stat().st_mode & 0o777 == 0o600 and len(token.read_text()) == 64
    token.chmod(0o640)
    with ray_session.private_token():
        pass
    assert token.stat().st_mode & 0o777 == 0o640


def test_the_cure_of_a_refusal_says_what_this_process_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cure = " here: set RAY_AUTH_TOKEN_PATH to the cluster's token file, or RAY_AUTH_MODE=disabled where it has none"
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "token"))
    assert ray_session.token_hint() == f"there is none{cure}"
    (tmp_path / "token").write_text("f" * 64)
    assert ray_session.token_hint() == f"it is that of {tmp_path}/token{cure}"
    monkeypatch.setenv("RAY_AUTH_TOKEN", "e" * 64)
    assert (
        ray_session.token_hint()
        == "it is that of RAY_AUTH_TOKEN here: correct it, or unset it and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    )
    monkeypatch.setenv("RAY_AUTH_MODE", "bogus")
    assert (
        ray_session.token_hint()
        == "RAY_AUTH_MODE is 'bogus', and Ray knows token and disabled: set one of them, or unset it"
    )
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert (
        ray_session.token_hint()
        == "RAY_AUTH_MODE=disabled says no token: unset it, and set RAY_AUTH_TOKEN_PATH to the cluster's token file"
    )
