"""A list becomes live only when the real Envoy says so; an edit it does not take leaves the old one; a shrink cuts what was open."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.domain.errors import ConsoleError, Unavailable
from console.domain.network import Allowlist, Sensitivity
from console.egress import live
from console.egress.envoy.config import route_config
from tests.fakes.egress_stage import Stage, entry, stage

pytestmark = pytest.mark.envoy

GOOD = Allowlist(1, (entry("e1", "good.test"), entry("e2", "good.test", 80)))


@pytest.fixture(scope="module")
def one() -> Iterator[Stage]:
    with stage() as it:
        yield it


@pytest.fixture
def running(one: Stage) -> Stage:
    applied = one.egress.apply(GOOD)
    assert applied.ok, applied.words
    return one


def test_a_live_edit_takes_effect_and_keeps_what_is_open(running: Stage) -> None:
    with running.box("a1") as box:
        assert box.get("http://other.test/").startswith("HTTP/1.1 403")
        assert box.hold("good.test:443") == "streaming"
        applied = running.egress.apply(Allowlist(2, (*GOOD.entries, entry("e3", "other.test", 80))))
        assert (applied.ok, applied.version, applied.sandboxes) == (True, 2, 1), applied.words
        assert applied.ms > 0
        assert "hello" in box.get("http://other.test/")
        assert box.held() == [True]


def test_a_shrink_cuts_every_connection(running: Stage) -> None:
    with running.box("a1") as one, running.box("a2") as two:
        for box in (one, two):
            assert box.hold("good.test:443") == "streaming"
        applied = running.egress.apply(Allowlist(3, GOOD.entries[1:]))
        assert applied.ok, applied.words
        assert one.held() == [False]
        assert two.held() == [False]
        assert one.tls("good.test:443", "good.test").startswith("HTTP/1.1 403")
        assert "hello" in two.get("http://good.test/")


def test_an_entry_that_is_not_acceptable_is_refused_and_the_old_list_stays(running: Stage) -> None:
    with running.box("a1") as box:
        bad = Allowlist(9, (*GOOD.entries, entry("e9", "good.test:99")))
        said = running.egress.validate(bad)
        assert not said.ok
        assert "good.test:99" in said.words
        applied = running.egress.apply(bad)
        assert (applied.ok, applied.version) == (False, 1)
        assert "hello" in box.get("http://good.test/")
        assert box.get("http://other.test/").startswith("HTTP/1.1 403")


def test_envoys_own_validation_has_the_last_word(running: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.egress.envoy.config._destinations", lambda a: [(e.host, e.port) for e in a.entries])
    twice = Allowlist(9, (*GOOD.entries, entry("e9", "good.test", 80, "GET")))
    said = running.egress.validate(twice)
    assert not said.ok
    assert "domain" in said.words.lower()
    assert running.egress.apply(twice).words == said.words


def broken_routes(real: Any) -> Any:
    def build(*arguments: Any) -> dict[str, Any]:
        made: dict[str, Any] = real(*arguments)
        return made | {"virtual_hosts": made["virtual_hosts"] * 2}

    return build


def typo_in_routes(real: Any) -> Any:
    return lambda *arguments: real(*arguments) | {"virtual_hots": []}


@pytest.mark.parametrize("fault", [broken_routes, typo_in_routes])
def test_what_the_running_envoy_rejects_is_taken_back(running: Stage, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    with running.box("a1") as box:
        with monkeypatch.context() as patch:
            real = route_config
            calls: list[int] = []

            def once(*arguments: Any) -> dict[str, Any]:
                calls.append(1)
                build = fault(real) if len(calls) == 1 else real
                made: dict[str, Any] = build(*arguments)
                return made

            patch.setattr(live, "route_config", once)
            applied = running.egress.apply(Allowlist(9, (*GOOD.entries, entry("e9", "other.test", 80))))
        assert not applied.ok
        assert applied.version == 1
        assert "Envoy refused" in applied.words
        assert len(applied.words) > 60
        assert box.get("http://other.test/").startswith("HTTP/1.1 403")
        assert "hello" in box.get("http://good.test/")
        after = running.egress.apply(Allowlist(10, (*GOOD.entries, entry("e9", "other.test", 80))))
        assert after.ok, after.words
        assert "hello" in box.get("http://other.test/")


def test_an_envoy_that_does_not_confirm_is_a_time_out_not_a_success(running: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "CONFIRM_S", 0.5)
    pid = envoy_pid(running)
    with running.box("a1") as box:
        written: list[int] = []
        real = running.egress._live._write

        def stop_first() -> None:
            if not written:
                os.kill(pid, signal.SIGSTOP)
            real()
            written.append(1)
            if len(written) == 2:  # the old list is back, and waited for as long as a busy machine takes
                monkeypatch.setattr(live, "CONFIRM_S", 60.0)
                os.kill(pid, signal.SIGCONT)

        monkeypatch.setattr(running.egress._live, "_write", stop_first)
        applied = running.egress.apply(Allowlist(9, (*GOOD.entries, entry("e9", "other.test", 80))))
        assert len(written) == 2
        assert (applied.ok, applied.version) == (False, 1)
        monkeypatch.undo()
        assert box.get("http://other.test/").startswith("HTTP/1.1 403")


def envoy_pid(running: Stage) -> int:
    pid = running.egress._envoy.pid
    assert pid is not None
    return pid


def test_records_say_who_what_and_why(running: Stage) -> None:
    with running.box("a1") as box:
        box.get("http://good.test/told?x=1", "POST", "Content-Length: 0\r\n")
        box.get("http://other.test/told")
        box.tls("good.test:443", "good.test")
        allowed = running.record("a1", path="/told?x=1")
        assert (allowed.method, allowed.host, allowed.status, allowed.allowed) == ("POST", "good.test", 200, True)
        assert allowed.rule == "entry e2"
        assert allowed.bytes_down > 20
        assert abs(allowed.at - time.time()) < 60
        denied = running.record("a1", path="/told")
        assert (denied.status, denied.allowed, denied.rule) == (403, False, "no entry for GET other.test:80/told")
        tunnel = running.record("a1", method="CONNECT")
        assert (tunnel.host, tunnel.status, tunnel.allowed, tunnel.rule) == ("good.test", 200, True, "entry e1")
        assert tunnel.bytes_up > 100


def test_hostile_text_reaches_no_record_unescaped(running: Stage) -> None:
    with running.box("hostile") as box:
        hostile = 'x"},{"agent":"a1","k":"http"}\x1b[31m\u202e'.encode()
        box.raw(b"GET http://evil.test/" + hostile + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        box.raw(b"GET / HTTP/1.1\r\nHost: evil.test" + hostile + b"\r\n\r\n")
        box.raw(b"GET http://evil.test/%1b%5b31m%0a{ HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        box.raw(b"GET http://evil.test/" + b"a" * 30000 + b" HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        box.raw(b"GET http://evil.test/last HTTP/1.1\r\nHost: evil.test\r\n\r\n")
        running.record("hostile", path="/last")
        until = time.monotonic() + 60
        while len(mine := [r for r in running.records if r.agent_id == "hostile"]) < 5 and time.monotonic() < until:
            time.sleep(0.02)  # each line is written when its connection is over
        assert len(mine) == 5
        for record in mine:
            for text in (record.method, record.host, record.path, record.rule):
                assert text.isascii()
                assert text.isprintable()
            assert len(record.path) <= 2000
            assert not record.allowed
        assert running.egress.health() == ("healthy", running.egress.health()[1])
        assert "unreadable" not in running.egress.health()[1]


def test_the_configuration_is_shown_as_it_is(running: Stage) -> None:
    with running.box("a1"):
        shown = json.loads(running.egress.config_text())
        assert [x["name"] for x in shown["static_resources"]["listeners"]] == ["s" + _slot(shown), "gate-s" + _slot(shown)]
        assert "good.test:443" in running.egress.config_text()


def _slot(shown: dict[str, Any]) -> str:
    return str(shown["static_resources"]["listeners"][0]["name"])[1:]


def test_many_entries_in_several_sandboxes(running: Stage) -> None:
    many = tuple(entry(f"m{i}", f"h{i}.many.test", 80 if i % 2 else 443) for i in range(300))
    with running.box("a1"), running.box("a2") as box:
        applied = running.egress.apply(Allowlist(5, (*GOOD.entries, *many)))
        assert (applied.ok, applied.sandboxes) == (True, 2), applied.words
        assert "hello" in box.get("http://good.test/")


def test_without_envoy_there_is_no_network_and_it_comes_back() -> None:
    with stage() as running, running.box("a1") as box:
        assert running.egress.apply(GOOD).ok
        assert box.hold("good.test:443") == "streaming"
        os.kill(envoy_pid(running), signal.SIGKILL)
        assert box.held() == [False]
        until = time.monotonic() + 60
        while not box.get("http://good.test/").startswith("HTTP/1.1 200"):
            assert time.monotonic() < until, running.egress.health()
            time.sleep(0.1)
        state, detail = running.egress.health()
        assert state == "healthy", detail
        assert "2 time" in detail or "3 time" in detail
        assert box.get("http://other.test/").startswith("HTTP/1.1 403")
        applied = running.egress.apply(Allowlist(6, (*GOOD.entries, entry("e3", "other.test", 80))))
        assert applied.ok, applied.words


def test_a_dead_name_server_is_no_leak_and_comes_back() -> None:
    with stage() as running, running.box("a1") as box:
        assert running.egress.apply(GOOD).ok
        pid = running.egress._resolver.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 60
        while not box.get("http://good.test/").startswith("HTTP/1.1 200"):
            assert time.monotonic() < until, running.egress.health()
            time.sleep(0.2)
        assert running.egress._resolver.pid not in (None, pid)


def test_hosts_are_answered_without_asking_anyone() -> None:
    with stage(hosts={"demo.test": ["10.99.0.2"]}, resolver=None) as it:
        listed = Allowlist(1, (entry("e1", "demo.test", 80, networks="10.99.0.0/16"), entry("e2", "good.test", 80)))
        assert it.egress.apply(listed).ok
        with it.box("a1") as box:
            assert "hello" in box.get("http://demo.test/")
            assert box.get("http://good.test/").startswith("HTTP/1.1 503")
        assert it.egress.apply(Allowlist(2, (entry("e1", "demo.test", 80),))).ok
        with it.box("a1") as box:
            assert box.get("http://demo.test/").startswith("HTTP/1.1 403")
        assert it.world.asked == []


def test_a_relay_is_put_into_a_folder_of_its_own_in_the_given_cgroup() -> None:
    root = next((p for p in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")) if (p / "cgroup.procs").exists()), None)
    assert root is not None
    leaf = root / f"wf-egress-test-{os.getpid()}"
    leaf.mkdir()
    try:
        with stage(relay_cgroup=leaf) as it, it.box("a1"):
            assert leaf.joinpath("a1", "cgroup.procs").read_text().split() == [str(it.egress.relay_pids()["a1"])]
        assert not leaf.joinpath("a1").exists()
    finally:
        leaf.rmdir()


def test_before_the_start_nothing_is_pretended(state_dir: Path) -> None:
    from console.egress.service import Egress

    egress = Egress(state_dir / "egress", state_dir / "run", lambda _record: None)
    assert egress.available().ok
    assert egress.health()[0] == "starting"
    said = egress.validate(GOOD)
    assert said.ok, said.words
    assert not egress.apply(GOOD).ok
    with pytest.raises(ConsoleError, match="not started"):
        egress.attach("a1", os.getpid(), 1, False)


def test_more_sensitive_data_cuts_and_leaves_only_what_may_receive_it(running: Stage) -> None:
    listed = (entry("e1", "good.test", 80), replace(entry("e2", "other.test", 80), may_receive=Sensitivity.CONFIDENTIAL))
    applied = running.egress.apply(Allowlist(2, listed))
    assert applied.ok, applied.words
    with running.box("c1") as one, running.box("c2") as two:
        assert one.hold() == "streaming" and two.hold() == "streaming"
        assert running.egress.classify("c1", Sensitivity.CONFIDENTIAL) == 1
        assert one.held() == [False] and two.held() == [True]
        assert one.get("http://good.test/").startswith("HTTP/1.1 403") and "hello" in one.get("http://other.test/")
        assert "hello" in two.get("http://good.test/")
        assert "by its type or its session's sensitivity" in running.record("c1", host="good.test", allowed=False).rule
        assert running.egress.classify("c1", Sensitivity.PUBLIC) == 0  # never looser
        assert one.get("http://good.test/").startswith("HTTP/1.1 403")


def test_a_class_that_envoy_does_not_take_leaves_no_network(running: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with running.box("c1") as box:
        monkeypatch.setattr(live, "route_config", lambda *given: route_config(*given) | {"virtual_hots": []})
        monkeypatch.setattr(live, "CONFIRM_S", 5.0)
        with pytest.raises(Unavailable, match="lost its proxy"):
            running.egress.classify("c1", Sensitivity.CONFIDENTIAL)
        assert running.egress.attached() == [] and box.connect("127.0.0.1", 3128) == "Connection refused"
