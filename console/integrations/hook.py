"""A hook of coding agents: it asks Watchfloor before each tool call, and blocks whenever it has no clear allow.

It runs alone, with the standard library, as ``python3 -I -S hook.py PROGRAM SOCKET [SECONDS]`` with the program's JSON on standard input.

* Exit 0: allowed.
* Exit 2 (block): everything else. Denied, no supervisor, too slow, an unreadable answer, a mistake here.

Every block has its words on standard error: without any, Codex goes on after an exit 2. The command that installs the hook makes sure that
a killed or missing interpreter blocks too.
"""

# What socket, signal, os and json wrap, without all that these import: every tool call waits for this file.
import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
import time
from _json import encode_basestring_ascii as quoted
from _json import make_scanner

BLOCK = 2
INPUT_MAX = 2 * 1024 * 1024
ANSWER_MAX = 1024 * 1024
CONNECT_S = 5.0
WAIT_S = 630.0
PARENT_S = 1.0


class Form:
    """How JSON is read, as the scanner asks for it: as the standard library reads it."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


class Blocked(Exception):
    """The call does not happen; the words go to the agent."""


def main(argv: list[str]) -> int:
    """One call. Never raises."""
    event = "PreToolUse"
    try:
        if len(argv) not in (2, 3):
            raise Blocked("the hook is not set up: watchfloor install-hook sets it up")
        call = read_call()
        event = str(loads(call, "the call cannot be read").get("hook_event_name") or event)
        answer = ask(argv[1], argv[0], call, float(argv[2]) if len(argv) == 3 else WAIT_S)
        reason, notices = str(answer.get("reason", ""))[:2000], str(answer.get("notices") or "")[:8000]
        if answer.get("verdict") != "allow":
            raise Blocked(f"{answer.get('rule', '')}: {reason}"[:2000] + (f"\n{notices}" if notices else ""))
        tell(argv[0], event, "allow", reason, notices)
        return 0
    except Blocked as error:
        words = f"Watchfloor: {error}"
    except BaseException as error:  # noqa: BLE001 - whatever happens here, the call does not
        words = f"Watchfloor could not be asked ({type(error).__name__}); the call is blocked"
    complain(words)
    try:
        tell(argv[0] if argv else "", event, "deny", words)
    except BaseException:  # noqa: BLE001, S110 - a closed pipe changes nothing
        pass
    return BLOCK


def complain(words: str) -> None:
    """To the agent, by standard error. Never raises."""
    try:
        posix.write(2, words.encode("utf-8", "backslashreplace") + b"\n")
    except BaseException:  # noqa: BLE001, S110 - a closed pipe changes nothing
        pass


def end(_number: int, _frame: object) -> None:
    """A signal that asks it to end."""
    complain("Watchfloor: the hook was ended; the call is blocked")
    posix._exit(BLOCK)


def read_call() -> bytes:
    """What the program says it is about to do."""
    raw = sys.stdin.buffer.read(INPUT_MAX + 1)
    if len(raw) > INPUT_MAX:
        raise Blocked("the call is larger than 2 MiB")
    return raw


def loads(raw: bytes, otherwise: str) -> dict[str, object]:
    """The object that JSON says and nothing behind it. Raises Blocked with ``otherwise`` where it is anything else."""
    text = raw.decode("utf-8", "surrogatepass").strip(" \t\n\r")
    try:
        found, end = make_scanner(Form)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError, ValueError, RecursionError):  # the scanner's words are no sentences
        raise Blocked(otherwise) from None
    if not isinstance(found, dict) or end != len(text):
        raise Blocked(otherwise)
    return found


def dumps(said: object) -> str:
    """JSON of texts, and of objects of them."""
    if isinstance(said, dict):
        return "{" + ", ".join(f"{quoted(name)}: {dumps(value)}" for name, value in said.items()) + "}"
    return quoted(str(said))


def ask(path: str, program: str, call: bytes, wait_s: float) -> dict[str, object]:
    """One request over the unix socket; the connection is closed with the answer. ``call`` is one object, and goes on as it came."""
    until, parent = time.monotonic() + wait_s, posix.getppid()
    data = f'{{"program": {quoted(program)}, "payload": '.encode() + call + b"}"
    lines = (
        "POST /v1/hook HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
        "Connection: close",
    )
    head = "\r\n".join(lines) + "\r\n\r\n"
    sock = _socket.socket(_socket.AF_UNIX)
    try:
        sock.settimeout(CONNECT_S)
        try:
            sock.connect(path)
            sock.sendall(head.encode() + data)
        except OSError as error:
            raise Blocked(
                f"no supervisor answers ({error.strerror or error}), so no call is allowed. A person starts one: watchfloor fleet"
            ) from None
        got = bytearray()
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise Blocked(f"there was no answer within {wait_s:g} s")
            # The program that started the hook is gone, so the answer has no reader. The supervisor should know at once.
            if posix.getppid() != parent:
                raise Blocked("the program that asked is gone")
            sock.settimeout(min(left, PARENT_S))
            try:
                part = sock.recv(65536)
            except TimeoutError:
                continue
            if not part:
                return parsed(bytes(got))
            got += part
            if len(got) > ANSWER_MAX:
                raise Blocked("the answer cannot be read")
    finally:
        sock.close()


def parsed(raw: bytes) -> dict[str, object]:
    """The answer; whatever is not a whole 200 with an object is a block."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    status = lines[0].split(b" ")[1:2]
    sizes = [line.split(b":", 1)[1] for line in lines[1:] if line.lower().startswith(b"content-length:")]
    if sizes and int(sizes[0]) != len(body):
        raise Blocked("the answer broke off")
    found = loads(body or b"{}", "the answer cannot be read")
    if status != [b"200"]:
        raise Blocked(str(found.get("error") or "the supervisor refused")[:2000])
    return found


def tell(program: str, event: str, decision: str, reason: str, notices: str = "") -> None:
    """The decision in the program's own words (code.claude.com/docs/en/hooks); ``notices`` go into the context of the agent."""
    if event == "PermissionRequest":
        verdict = {"behavior": decision} | ({"message": reason} if decision == "deny" else {})
        said: dict[str, object] = {"hookEventName": event, "decision": verdict}
    else:
        said = {"hookEventName": event}
        # Codex 0.169 calls an allow "unsupported" and drops the whole answer, its context too: there the exit code alone allows.
        if decision != "allow" or program != "codex":
            said |= {"permissionDecision": decision, "permissionDecisionReason": reason}
        if notices:
            said["additionalContext"] = notices
    # Gemini CLI 0.61 takes an answer on standard output for the whole of it, and has no word for a decision inside hookSpecificOutput.
    whole = {"decision": decision, "reason": reason} if program == "gemini" else {}
    posix.write(1, dumps({**whole, "hookSpecificOutput": said}).encode() + b"\n")


if __name__ == "__main__":
    for number in (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, end)
    # Nothing that runs at the end of an interpreter may change the exit status.
    status = main(sys.argv[1:])
    posix._exit(status)
