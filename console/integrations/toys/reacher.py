"""A toy agent that reaches for the network: one URL it may have, one it may not, and past the proxy. It reports what came back."""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.integrations.client import Agent, Refused
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from client import Agent, Refused


def reach(url: str) -> str:
    """Status or reason of one GET through HTTP_PROXY (urllib's own handling of the environment)."""
    proxy = os.environ.get("HTTP_PROXY") or os.environ.get("http_proxy")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    try:
        with opener.open(url, timeout=10) as answer:
            return f"{answer.status} ({len(answer.read(65_536))} bytes)"
    except urllib.error.HTTPError as error:
        return f"{error.code} refused"
    except (OSError, http.client.HTTPException) as error:
        return f"no answer: {getattr(error, 'reason', error)}"


def around(address: str) -> str:
    """Tries an address directly, past the proxy: in NONE and PROXIED there is no way out."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
    except OSError as error:
        return f"no way: {error.strerror or error}"
    return "CONNECTED"


def main() -> None:
    """Reaches each place once a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--step", type=float, default=2.0, help="seconds between two rounds")
    parser.add_argument("--url", action="append", default=[], help="what to GET, repeatable")
    parser.add_argument("--direct", action="append", default=[], help="ADDRESS:PORT to try past the proxy, repeatable")
    options = parser.parse_args()
    agent = Agent()
    deadline = time.monotonic() + options.seconds
    while time.monotonic() < deadline:
        tries = [(f"GET {url}", reach(url)) for url in options.url] + [(f"connect {a}", around(a)) for a in options.direct]
        for what, came in tries or [("nothing", "no URL was given")]:
            print(f"{what}: {came}", flush=True)
            try:
                agent.usage(iterations=1, tokens=120, tool_calls=1, cost_usd=0.002, action=f"{what}: {came}"[:500])
            except Refused as refusal:
                print(f"report refused: {refusal}", flush=True)
        time.sleep(options.step)


if __name__ == "__main__":
    main()
