"""A host of the demo, before anything of it runs."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

from console.demo.hosts import make_host
from console.settings.options import load_options


def test_an_engine_that_is_not_there_is_no_doubt_of_the_stop(tmp_path: Path) -> None:
    there = tmp_path / "e.sock"
    with closing(socket.socket(socket.AF_UNIX)) as engine:
        engine.bind(str(there))
        for name, named, kept in (("a", str(there), str(there)), ("b", str(tmp_path / "none.sock"), "")):
            host = make_host(name, tmp_path / name, named, endpoint="", bucket="", hosts={}, stand_ins=[])
            assert load_options(host.places.settings_file).engine_socket == kept
