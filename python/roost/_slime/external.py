"""Inference engines that run elsewhere: where they are, what they say of themselves, and where a rollout function asks."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from roost import _roost
from roost._plan.arguments import as_text, check_seconds
from roost._plan.errors import EngineError, fault
from roost._slime.layout import argument
from roost._slime.variables import set_argument

PAGES = ("/server_info", "/get_server_info")  # today's, and that of older servers
ASKED_AT_ONCE = 32
ANSWER_MAX = 16 << 20  # bytes


@dataclass(frozen=True)
class ExternalEngine:
    """An inference engine that another program started. ``parallel_config`` has tp_size, pp_size, ep_size and moe_dp_size."""

    url: str
    host: str
    port: int
    worker_type: str
    num_gpus: int
    disaggregation_bootstrap_port: int | None
    server_info: dict[str, Any] = field(repr=False)
    parallel_config: dict[str, int] = field(repr=False)


def discover_external_engines(addrs: Sequence[str], timeout: float = 30.0) -> list[ExternalEngine]:
    """Asks inference engines what they are, all at once, and returns what they said in the order of ``addrs``.

    An address is ``host:port`` or ``http://host:port``; IPv6 has brackets. ``timeout`` is in seconds, for each engine. Raises
    roost.Error for an address that is none, and EngineError with every engine that does not answer.
    """
    check_seconds("timeout", timeout)
    if isinstance(addrs, str | bytes) or not isinstance(addrs, Sequence):
        raise TypeError(f"addrs must be a list of addresses, not {addrs!r}")
    urls = [engine_url(address) for address in addrs]
    with ThreadPoolExecutor(min(ASKED_AT_ONCE, max(1, len(urls)))) as pool:
        answers = list(pool.map(lambda url: ask_server(url, timeout), urls))
    silent = [f"{url} ({answer})" for url, answer in zip(urls, answers, strict=True) if isinstance(answer, str)]
    if silent:
        raise fault(
            EngineError,
            f"{len(silent)} of {len(urls)} inference engines do not say what they are: {'; '.join(silent)}",
            hint="are they running, and are these the addresses that they serve on?",
        )
    return [read_engine(url, answer) for url, answer in zip(urls, answers, strict=True) if isinstance(answer, dict)]


def engine_url(address: Any) -> str:
    text = as_text("an address of addrs", address).strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_good = bool(parts.scheme in ("http", "https") and parts.hostname and parts.port) and parts.path in ("", "/")
        is_good = is_good and not parts.query and not parts.fragment
    except ValueError:  # a bracket too few, or a port that is no number
        is_good = False
    if not is_good:
        raise fault(
            _roost.Error,
            f"'{text}' is not the address of an inference engine",
            hint="write host:port or http://host:port; IPv6 in brackets, [fd00::1]:30000",
            code="schema",
        )
    return f"{parts.scheme}://{parts.netloc}"


def ask_server(url: str, timeout: float) -> dict[str, Any] | str:
    """What a server says of itself, or why it does not."""
    reasons, deadline = [], time.monotonic() + timeout
    for page in PAGES:
        try:
            left = max(0.001, deadline - time.monotonic())
            with urllib.request.urlopen(f"{url}{page}", timeout=left) as response:
                found = json.loads(response.read(ANSWER_MAX))
            if isinstance(found, dict):
                return found
            reasons.append(f"{page}: it is no JSON object")
        except (OSError, HTTPException, ValueError) as error:
            reasons.append(f"{page}: {error}")
    return "; ".join(reasons)


def read_engine(url: str, info: dict[str, Any]) -> ExternalEngine:
    parts = urlsplit(url)

    def number(*names: str) -> int:
        """The first that is a positive number; else 0."""
        for name in names:
            value = info.get(name)
            if (
                isinstance(value, int | str)
                and not isinstance(value, bool)
                and str(value).isdecimal()
                and int(value) > 0
            ):
                return int(value)
        return 0

    tp = number("tp_size", "tensor_parallel_size") or 1
    pp = number("pp_size", "pipeline_parallel_size") or 1
    mode = info.get("disaggregation_mode")
    return ExternalEngine(
        url=url,
        host=str(parts.hostname),
        port=int(parts.port or 0),
        worker_type="encoder" if info.get("encoder_only") else mode if mode in ("prefill", "decode") else "regular",
        num_gpus=number("num_gpus", "num_gpus_per_engine") or tp * pp,
        disaggregation_bootstrap_port=number("disaggregation_bootstrap_port") or None,
        server_info=info,
        parallel_config={
            "tp_size": tp,
            "pp_size": pp,
            "ep_size": number("ep_size", "expert_parallel_size") or 1,
            "moe_dp_size": number("moe_dp_size") or 1,
        },
    )


def apply_external_engine_info_to_args(args: Any) -> None:
    """Asks the engines of ``args.rollout_external_engine_addrs``, and sets what follows from their answers: ``rollout_external``,
    ``rollout_external_engine_infos`` (a dict for each engine), ``rollout_num_engines`` and ``rollout_num_gpus``.

    Raises roost.Error where there are no addresses, and what ``discover_external_engines`` raises.
    """
    addresses = argument(args, "rollout_external_engine_addrs")
    if not addresses:
        raise _roost.Error("rollout_external_engine_addrs is empty: name the inference engines that run elsewhere")
    found = discover_external_engines(addresses)
    set_argument(args, "rollout_external", True)
    set_argument(args, "rollout_external_engine_infos", [asdict(engine) for engine in found])
    set_argument(args, "rollout_num_engines", len(found))
    set_argument(args, "rollout_num_gpus", sum(engine.num_gpus for engine in found))


def get_model_url(args: Any, model: str, endpoint: str = "/generate") -> str:
    """Where a rollout function sends its requests for a model: the address of its router.

    The router is that of ``args.sglang_model_routers[model]``, else ``args.sglang_router_ip`` and ``_port``. Raises roost.Error where
    there is none.
    """
    routers = argument(args, "sglang_model_routers") or {}
    host, port = routers.get(model) or (argument(args, "sglang_router_ip"), argument(args, "sglang_router_port"))
    if not host or not port:
        known = ", ".join(map(str, routers)) or "none"
        raise _roost.Error(f"model '{model}' has no router; models with one are: {known}")
    shown = f"[{host}]" if ":" in str(host) and not str(host).startswith("[") else host
    return f"http://{shown}:{port}/{endpoint.lstrip('/')}"
