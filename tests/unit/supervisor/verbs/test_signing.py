"""``keys init`` beside a supervisor that is still starting: its bucket is waited for, and only while it may still be written."""

from __future__ import annotations

import socket
import threading
import time
from argparse import Namespace
from pathlib import Path

import pytest

from console.domain.errors import Conflict
from console.remotekill.keys import init_keys
from console.settings.options import Options, save_options
from console.settings.places import Places, find_places
from console.supervisor.verbs import signing
from console.supervisor.verbs.signing import keys
from tests.fakes.strict_gcs import StrictGcs

LONG_S = 60.0


@pytest.fixture
def places(state_dir: Path) -> Places:
    return find_places(str(state_dir), create=True)


def asked() -> Namespace:
    return Namespace(action="init", fleet=None, quorum=1, json=True)


def test_the_bucket_of_a_supervisor_that_starts_is_waited_for(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signing, "PATIENCE_S", LONG_S)
    with StrictGcs("fleet") as gcs:
        options = {"remote.bucket": "fleet", "remote.endpoint": gcs.url}
        starting = threading.Timer(0.3, save_options, (places.settings_file, options))
        starting.start()
        try:
            assert keys(places, asked()) == 0
        finally:
            starting.join()
        assert "signed baseline written" in capsys.readouterr().out and "platform/kill-switch.json" in gcs.bucket.objects


def test_a_supervisor_that_answers_has_said_all_and_without_one_the_wait_ends(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signing, "PATIENCE_S", LONG_S)
    began = time.monotonic()
    places.operator_sock.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(places.operator_sock))
        line.listen()
        assert keys(places, asked()) == 0
    assert time.monotonic() - began < LONG_S and "no bucket is set" in capsys.readouterr().out
    monkeypatch.setattr(signing, "PATIENCE_S", 0.0)
    places.operator_sock.unlink()
    assert signing._awaited(places, Options()) == Options()


def test_keys_of_another_fleet_than_the_hosts_are_refused_before_anything_is_made(places: Places) -> None:
    with StrictGcs("fleet") as gcs:
        options = {"remote.bucket": "fleet", "remote.endpoint": gcs.url, "remote.fleet": "prod"}
        save_options(places.settings_file, options)
        with pytest.raises(Conflict, match="fleet prod.*fleet office") as refused:
            keys(places, Namespace(action="init", fleet="office", quorum=1, json=True))
        assert "--remote-fleet office" in refused.value.remedy and not list(places.keys_dir.glob("*")) and not gcs.bucket.objects
        init_keys(places.keys_dir, "office")  # made before the host had a bucket
        with pytest.raises(Conflict, match="fleet prod.*fleet office"):
            keys(places, asked())
        assert not gcs.bucket.objects, "a baseline that this host would refuse is never written"
