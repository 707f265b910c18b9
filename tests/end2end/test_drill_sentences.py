"""The drill of the un-kill, line by line as docs/how-to/remote-kill.md has it, against the strict stand-in of the bucket."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.supervisor.verbs.signing import keys
from tests.fakes.instance import ROOT, Instance, until
from tests.fakes.strict_gcs import StrictGcs

BUCKET = "my-fleet-stop"
WATCHFLOOR = f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m console "$@"\n'
GCLOUD = f"""#!{sys.executable}
import os, sys, urllib.parse, urllib.request
storage, cp, source, target = sys.argv[1:]
assert (storage, cp, source) == ("storage", "cp", "-"), sys.argv
bucket, _, name = target.removeprefix("gs://").partition("/")
url = os.environ["GCS"] + f"/upload/storage/v1/b/{{bucket}}/o?uploadType=media&name=" + urllib.parse.quote(name, safe="")
urllib.request.urlopen(urllib.request.Request(url, data=sys.stdin.buffer.read(), method="POST"), timeout=60)
"""


def drill() -> str:
    """The block of the page, as a person would paste it."""
    found = re.findall(r"<!-- drill -->\n```sh\n(.*?)```", (ROOT / "docs" / "how-to" / "remote-kill.md").read_text(), re.DOTALL)
    assert len(found) == 1
    return str(found[0])


@pytest.fixture
def gcs() -> Iterator[StrictGcs]:
    with StrictGcs(BUCKET) as server:
        yield server


@pytest.fixture
def it(gcs: StrictGcs, state_dir: Path) -> Iterator[Instance]:
    options = ("--remote-bucket", BUCKET, "--remote-endpoint", gcs.url, "--remote-poll-s", "1", "--remote-fleet", "drill")
    with Instance(state_dir, *options) as made:
        keys(made.places, Namespace(action="init", fleet=None, quorum=2, json=True))
        until(lambda: not made.api.status().soft_stop, words="the soft stop lifts by itself")
        yield made


@pytest.mark.timeout(300)
def test_every_line_of_the_drill_does_what_the_page_says(gcs: StrictGcs, it: Instance, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in (("watchfloor", WATCHFLOOR), ("gcloud", GCLOUD)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "WATCHFLOOR_STATE_DIR": str(it.state_dir), "GCS": gcs.url}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", drill()], env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr[-4000:])
    assert "NOT REFUSED" not in done.stdout
    assert "remote order still blocks" in done.stderr or "remote order" in done.stderr, done.stderr
    agents = {a.name: a.state for a in it.api.fleet().agents}
    assert agents["drill"] == "killed", "nothing was restored"
    assert agents["after-the-drill"] in ("running", "starting") and not it.api.fleet().killed
    assert b'"killed":false' in gcs.bucket.get("platform/kill-switch.json", {}).body
