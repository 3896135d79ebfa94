"""The programs of serve.yaml: a server that rolls out, and a trainer that asks all servers in turn."""

import argparse
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

RANK = int(os.environ["RANK"])
STEPS = 3


class Rollout(BaseHTTPRequestHandler):
    """Answers GET /<prompt> with what the server made of it."""

    def do_GET(self) -> None:
        body = json.dumps({"server": RANK, "text": self.path[1:].upper()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        pass


def serve(port: int) -> None:
    print(f"serving on devices {os.environ['VISIBLE_DEVICES']}")
    ThreadingHTTPServer(("", port), Rollout).serve_forever()


def train(servers: list[str]) -> None:
    for step in range(STEPS):
        server = servers[(RANK + step) % len(servers)]
        with urlopen(f"http://{server}/step-{step}", timeout=30) as answer:
            rollout = json.load(answer)
        print(f"step {step}: {rollout['text']} from server {rollout['server']}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["serve", "train"])
    parser.add_argument("--port", type=int)
    parser.add_argument("--servers", default="")
    words = parser.parse_args()
    if words.what == "serve":
        serve(words.port)
    else:
        train(words.servers.split(","))


if __name__ == "__main__":
    main()
