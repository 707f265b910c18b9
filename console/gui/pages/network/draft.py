"""From a blocked request to the narrowest entry that would allow it, or to why no entry ever should."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

from console.api.messages import AllowlistEntryView, EgressView
from console.domain.errors import UsageProblem
from console.domain.network import METHODS, AllowlistEntry

TLS_PORT = 443
_METADATA = frozenset(
    (
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "metadata.azure.internal",
        "metadata.azure.com",
        "instance-data",
        "instance-data.ec2.internal",
        "metadata.packet.net",
        "metadata.platformequinix.com",
    )
)
"""Names that cloud providers give to the service that hands out a machine's credentials."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be offered for a request: ``allow`` with a draft, ``never``, or ``none``; ``why`` in words."""

    kind: Literal["allow", "never", "none"]
    why: str = ""
    draft: AllowlistEntryView | None = None


def offer(record: EgressView) -> Offer:
    """The narrowest entry for a blocked request: this host, this port, and for plain HTTP this method and path alone."""
    if record.allowed:
        return Offer("none")
    host, _, port_text = record.host.lower().rpartition(":") if _has_port(record.host) else (record.host.lower(), "", "")
    if host.strip(".") in _METADATA or "metadata address" in record.rule:
        return Offer("never", "Private, own and metadata addresses are never offered: they hand out a machine's credentials.")
    if _is_address(host):
        return Offer("never", "An address is never allowed: entries name services by their DNS names.")
    tunnel = record.method == "CONNECT"
    port = int(port_text) if port_text else TLS_PORT if tunnel else 80
    if tunnel != (port == TLS_PORT):
        return Offer("none", "A tunnel goes to port 443 only, and port 443 is reached by a tunnel only.")
    if record.rule.startswith("entry "):
        return Offer("none", "Its entry is there already: the request itself was refused.")
    draft = AllowlistEntryView(
        entry_id="",
        host=host,
        port=port,
        methods=[] if tunnel or record.method not in METHODS else [record.method],
        paths=[] if tunnel else [record.path.split("?", 1)[0] or "/"],
        # Less, and the agent's next try would be refused as this one was: its session holds data of that class.
        may_receive=record.sensitivity if record.sensitivity in ("CONFIDENTIAL", "SECRET") else "INTERNAL",
    )
    return _checked(draft)


def _checked(draft: AllowlistEntryView) -> Offer:
    try:
        AllowlistEntry("draft", draft.host, draft.port, tuple(draft.methods), tuple(draft.paths), reason="-", owner="-").check()
    except UsageProblem as problem:
        return Offer("none", str(problem))
    return Offer("allow", "", draft)


def _has_port(host: str) -> bool:
    head, colon, tail = host.rpartition(":")
    return bool(colon) and tail.isascii() and tail.isdigit() and len(tail) <= 5 and "]" not in tail and head.count(":") == 0


def _is_address(host: str) -> bool:
    bare = host.strip("[]").split("%", 1)[0]
    try:
        ipaddress.ip_address(bare)
    except ValueError:
        # the spellings inet_aton takes too: 0x7f.1, 2130706433, 127.1
        last = bare.rsplit(".", 1)[-1]
        return bare.startswith("[") or ":" in bare or last.isdigit() or (last.startswith("0x") and len(last) > 2)
    return True


def probe_url(host: str, port: int, paths: list[str]) -> str:
    """A URL the draft itself should allow: Envoy's word on the draft is asked for together with it."""
    name = f"probe.{host[2:]}" if host.startswith("*.") else host
    scheme, path = ("https", "/") if port == TLS_PORT else ("http", paths[0] if paths else "/")
    return f"{scheme}://{name}:{port}{path}"[:2000]


def asked_for(text: str) -> tuple[str, str]:
    """(method, URL) of the test field: ``POST https://…``, ``https://…`` or a bare host (https)."""
    words = text.split()
    method = words[0].upper() if len(words) > 1 and words[0].upper() in (*METHODS, "CONNECT") else "GET"
    url = words[-1] if words else ""
    return method, url if "://" in url else f"https://{url}"
