"""CycloneDX 1.6: what a package carries, read from what was staged."""

from __future__ import annotations

import email.parser
import json
import os
import re
import sys
import uuid
from pathlib import Path
from typing import Any

from packages.describe import utc

NAMESPACE = uuid.UUID("6f1b1f6e-2a35-5d4f-9c59-3f5a1cf6f0d7")


def write(file: Path, name: str, version: str, tree: Path) -> None:
    """The SBOM of one package; the same text for the same files."""
    parts = [*wheels(tree), *_interpreter(tree)]
    body: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": utc(int(os.environ["SOURCE_DATE_EPOCH"])),
            "component": {"type": "application", "bom-ref": name, "name": name, "version": version, "licenses": _license("Apache-2.0")},
        },
        "components": sorted(parts, key=lambda p: p["bom-ref"]),
    }
    body["serialNumber"] = f"urn:uuid:{uuid.uuid5(NAMESPACE, json.dumps(body, sort_keys=True))}"
    file.write_text(json.dumps(body, indent=1, sort_keys=True) + "\n")


def wheels(tree: Path) -> list[dict[str, Any]]:
    """One component for each wheel, as its metadata names it."""
    found = []
    for metadata in sorted(tree.rglob("*.dist-info/METADATA")):
        said = email.parser.Parser().parsestr(metadata.read_text(encoding="utf-8", errors="replace"), headersonly=True)
        name = re.sub(r"[-_.]+", "-", str(said["Name"])).lower()
        version = str(said["Version"])
        purl = f"pkg:pypi/{name}@{version}"
        part: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        words = said["License-Expression"] or said["License"] or _classifier(said.get_all("Classifier") or [])
        if words:
            part["licenses"] = _license(str(words).strip().splitlines()[0][:100])
        found.append(part)
    return found


def _classifier(lines: list[str]) -> str:
    return next((line.rpartition(" :: ")[2] for line in lines if line.startswith("License :: ")), "")


def _license(words: str) -> list[dict[str, Any]]:
    """By name: not every project writes an identifier of SPDX."""
    return [{"license": {"name": words}}]


def _interpreter(tree: Path) -> list[dict[str, Any]]:
    if not list(tree.glob("opt/watchfloor/bin/python3.*")):
        return []
    version = ".".join(map(str, sys.version_info[:3]))
    purl = f"pkg:generic/cpython@{version}"
    part = {"type": "framework", "bom-ref": purl, "name": "cpython", "version": version, "purl": purl, "licenses": _license("PSF-2.0")}
    return [part]
