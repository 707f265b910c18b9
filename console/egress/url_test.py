"""Tell what Envoy would answer to a request, without Envoy: read host and path as Envoy does, then ask ``Allowlist.judge``.

Envoy's reading:

* A host in any case is the same host.
* A tunnel goes to port 443 only; plain HTTP never does.
* A path is normalised (RFC 3986 section 5.2.4, repeated slashes merged) before it is matched.
* An escaped slash is refused.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from console.domain.errors import UsageProblem
from console.domain.network import Allowlist, Judgement
from console.egress.envoy.fragments import TLS_PORT

_AUTHORITY = re.compile(r"^([a-z0-9*_.-]{1,253})(?::([1-9][0-9]{0,4}))?\Z")
_UNRESERVED = re.compile(r"%(2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])", re.IGNORECASE)
_NOT_TEXT = re.compile(r"[^!-~]")
_DOTS_WITH_PARAMETER = re.compile(r"(?<=/)(\.\.?);[^/]*")
_ENCODED = re.compile(r'["<>^`{|}]')
_ESCAPED = re.compile(r"%(2f|5c|00)", re.IGNORECASE)


def judge_url(allowlist: Allowlist, method: str, url: str) -> Judgement:
    """Whether an agent in PROXIED mode reaches a URL; https means a tunnel. Raises UsageProblem when it is not a URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageProblem(f"{url[:200]!r} is not a URL.", "Write for example https://api.example.com/v1.") from error
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageProblem(f"{url[:200]!r} is not an http or https URL.", "Write for example https://api.example.com/v1.")
    netloc = parts.netloc.rpartition("@")[2]  # who one is goes into a header, not to the proxy
    if parts.scheme == "https":
        return judge_request(allowlist, "CONNECT", netloc if port is not None else f"{netloc}:{TLS_PORT}", "")
    query = f"?{parts.query}" if parts.query else ""
    return judge_request(allowlist, method.upper(), netloc, (parts.path or "/") + query)


def judge_request(allowlist: Allowlist, method: str, authority: str, path: str) -> Judgement:
    """Judges a request as it arrives at Envoy: the authority of its first line or Host header, and its path."""
    found = _AUTHORITY.match(authority.lower())
    needed = f"{method} {authority}" + ("" if method == "CONNECT" else path)
    # A literal star would fit a wildcard entry by its text, though no such host exists.
    if found is None or "*" in authority:
        return Judgement(False, None, f"no entry for {needed}")
    host, port_text = found[1], found[2]
    if method == "CONNECT":
        if port_text is None or int(port_text) != TLS_PORT:
            return Judgement(False, _near(allowlist, host), f"{needed}: a tunnel goes to port 443 only")
        return allowlist.judge("CONNECT", host, TLS_PORT, "")
    port = int(port_text or 80)
    # Plain HTTP to port 443 would pass neither the gate nor its check of the name.
    if port == TLS_PORT:
        return Judgement(False, _near(allowlist, host), f"{needed}: port 443 is reached by CONNECT only")
    plain = normalised(path)
    if plain is None:
        return Judgement(False, _near(allowlist, host), f"{needed}: the path is not one Envoy accepts")
    return allowlist.judge(method, host, port, plain)


def _near(allowlist: Allowlist, host: str) -> str | None:
    return next((e.entry_id for e in allowlist.entries if e.covers_host(host)), None)


def normalised(path: str) -> str | None:
    """The path as Envoy matches it, without query; None when Envoy refuses it."""
    bare = path.split("?", 1)[0]
    if not bare.startswith("/") or "#" in path or _NOT_TEXT.search(path) or _ESCAPED.search(bare):
        return None
    bare = _DOTS_WITH_PARAMETER.sub(r"\1", bare)  # written plainly; Envoy leaves /%2e%2e;/ as /..;/
    bare = _UNRESERVED.sub(lambda m: chr(int(m[1], 16)), bare).replace("\\", "/")
    bare = _ENCODED.sub(lambda m: f"%{ord(m[0]):02X}", bare)
    kept: list[str] = []
    segments = bare.split("/")[1:]
    for at, segment in enumerate(segments):
        last = at == len(segments) - 1
        if segment == "..":
            kept = kept[:-1]
            if last:
                kept.append("")
        elif segment == ".":
            if last:
                kept.append("")
        else:
            kept.append(segment)
    return re.sub("/{2,}", "/", "/" + "/".join(kept))
