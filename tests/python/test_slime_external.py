"""Inference engines that run elsewhere: real servers on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

import roost
from roost.slime import (
    apply_external_engine_info_to_args,
    discover_external_engines,
    get_model_url,
    get_placement_group_layout,
)

pytestmark = pytest.mark.plain


@contextmanager
def server(pages: dict[str, Any]) -> Iterator[str]:
    """Serves pages as JSON; bytes as they are, and no page at all as a 404."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *words: Any) -> None:
            pass

    found = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{found.server_port}"
    finally:
        found.shutdown()
        thread.join()
        found.server_close()


def test_engines_say_what_they_are() -> None:
    with (
        server({"/server_info": {"tp_size": 4, "pp_size": 2, "ep_size": 2}}) as first,
        server(
            {
                "/get_server_info": {
                    "num_gpus": 3,
                    "disaggregation_mode": "prefill",
                    "disaggregation_bootstrap_port": 8998,
                }
            }
        ) as second,
        server({"/server_info": {"encoder_only": True, "num_gpus_per_engine": "2"}}) as third,
    ):
        found = discover_external_engines([first, f"http://{second}", f"http://{third}/"])
    ports = [int(address.rpartition(":")[2]) for address in (first, second, third)]
    assert [
        (
            engine.url,
            engine.host,
            engine.port,
            engine.worker_type,
            engine.num_gpus,
            engine.disaggregation_bootstrap_port,
        )
        for engine in found
    ] == [
        (f"http://{first}", "127.0.0.1", ports[0], "regular", 8, None),
        (f"http://{second}", "127.0.0.1", ports[1], "prefill", 3, 8998),
        (f"http://{third}", "127.0.0.1", ports[2], "encoder", 2, None),
    ]
    assert found[0].parallel_config == {"tp_size": 4, "pp_size": 2, "ep_size": 2, "moe_dp_size": 1}
    assert found[0].server_info == {"tp_size": 4, "pp_size": 2, "ep_size": 2}


def test_arguments_follow_from_the_engines() -> None:
    with server({"/server_info": {"num_gpus": 4}}) as first, server({"/server_info": {"num_gpus": 2}}) as second:
        args = SimpleNamespace(
            rollout_external_engine_addrs=[first, second], actor_num_nodes=1, actor_num_gpus_per_node=4
        )
        apply_external_engine_info_to_args(args)
    assert (args.rollout_external, args.rollout_num_engines, args.rollout_num_gpus) == (True, 2, 6)
    assert [info["num_gpus"] for info in args.rollout_external_engine_infos] == [4, 2]
    assert get_placement_group_layout(args) == (4, 4)


def test_every_engine_that_does_not_answer_is_named() -> None:
    with (
        server({"/server_info": {}}) as good,
        server({"/server_info": b"{", "/get_server_info": [1]}) as strange,
        server({}) as gone,
    ):
        with pytest.raises(roost.EngineError) as caught:
            discover_external_engines([good, strange, gone], timeout=5)
    words = str(caught.value)
    assert words.startswith(f"2 of 3 inference engines do not say what they are: http://{strange} (/server_info: ")
    assert "/get_server_info: it is no JSON object" in words and f"http://{gone} (" in words and "404" in words
    assert "are they running, and are these the addresses that they serve on?" in words


@pytest.mark.parametrize(
    "address",
    [
        "host",
        "host:",
        ":1",
        "host:x",
        "host:70000",
        "ftp://host:1",
        "host:1/path",
        "host:1?x",
        "fd00::1:30000",
        "[fd00::1:30000",
        "",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(roost.Error, match="is not the address of an inference engine .*write host:port"):
        discover_external_engines([address])


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="addrs must be a list of addresses, not 'host:1'"):
        discover_external_engines("host:1")
    with pytest.raises(TypeError, match="an address of addrs must be a str, not 5"):
        discover_external_engines([5])  # type: ignore[list-item]
    with pytest.raises(roost.Error, match="timeout must be a number of seconds"):
        discover_external_engines([], timeout=-1)
    with pytest.raises(roost.Error, match="rollout_external_engine_addrs is empty"):
        apply_external_engine_info_to_args(SimpleNamespace(rollout_external_engine_addrs=[]))
    assert discover_external_engines([]) == []


def test_requests_go_to_the_router_of_their_model() -> None:
    args = SimpleNamespace(
        sglang_router_ip="10.0.0.1", sglang_router_port=3000, sglang_model_routers={"reward": ("fd00::1", 4000)}
    )
    assert get_model_url(args, "reward") == "http://[fd00::1]:4000/generate"
    assert get_model_url(args, "policy", "v1/models") == "http://10.0.0.1:3000/v1/models"
    with pytest.raises(roost.Error, match="model 'policy' has no router; models with one are: none"):
        get_model_url(SimpleNamespace(), "policy")
