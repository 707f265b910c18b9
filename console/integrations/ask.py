"""May I? The standard library alone: ``python3 -I -S ask.py TOOL [ARGUMENT]`` exits 0 on an allow and 4 on everything else."""

import json
import os
import socket
import sys
import time


def ask(tool: str, argument: str = "", wait_s: float = 630.0, path: str = "") -> tuple[bool, str]:
    """Return (allowed, why) within ``wait_s`` seconds. Waits for a person where the rules ask one. No clear answer: not allowed."""
    until, got = time.monotonic() + wait_s, b""
    try:
        body = json.dumps({"tool": tool, "argument": argument}).encode()
        head = f"POST /v1/permission HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(path or os.environ["WATCHFLOOR_AGENT_SOCKET"])
            sock.sendall(head.encode() + body)
            while True:
                sock.settimeout(max(0.001, until - time.monotonic()))
                part = sock.recv(65536)
                if not part:
                    break
                got += part
                if len(got) > 1 << 20 or time.monotonic() > until:
                    return False, "too much, or too slow"
        lines, _, data = got.partition(b"\r\n\r\n")
        answer = json.loads(data)
        whole = f"\r\ncontent-length: {len(data)}\r\n".encode() in lines.lower() + b"\r\n"
        allowed = lines.split(b" ")[1:2] == [b"200"] and whole and answer["verdict"] == "allow"
        return allowed, str(answer.get("reason") or answer.get("error") or "refused")
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        return False, "no answer in time" if isinstance(error, TimeoutError) else f"no answer that can be read ({type(error).__name__})"


if __name__ == "__main__":
    may, why = ask(sys.argv[1], "".join(sys.argv[2:])) if len(sys.argv) in (2, 3) else (False, "usage: ask.py TOOL [ARGUMENT]")
    print("allow" if may else "deny", json.dumps(why[:2000]))
    sys.exit(0 if may else 4)
