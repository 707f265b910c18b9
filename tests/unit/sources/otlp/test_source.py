"""The source that is told: off unless switched on, honest about what it hears, and never more than its listener's word."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.sources.kinds import VENDORS
from console.sources.otlp import json_form as otlp_json
from console.sources.otlp import source as otlp
from console.sources.otlp.source import OtlpSource
from console.sources.spend.rates import RateBook

DATA = Path(__file__).parents[3] / "data"
CLAUDE_SESSION = "ca2200bd-a045-4b6c-a82c-3a0d8505a41a"


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpSource]:
    monkeypatch.setattr(otlp, "YOUNG_S", 0.0)
    made = OtlpSource(RateBook(VENDORS), 1)
    made._receiver.port = 0  # the kernel chooses
    made.start()
    yield made
    made.close()


def tell(source: OtlpSource, program: str) -> None:
    for line in (DATA / program / "otlp-http-json.jsonl").read_text().splitlines():
        told = json.loads(line)
        kind = told["path"].rpartition("/")[2]
        source.book.take(otlp_json.items(kind, json.dumps(told["body"]).encode()))


def test_switched_off_it_says_how_to_switch_it_on_and_listens_nowhere() -> None:
    off = OtlpSource(RateBook(VENDORS))
    off.start()
    report = off.look()
    assert (report.available, report.broken) == (False, False) and "otlp.port" in report.reason
    assert not off._receiver.is_open and off.can_see and off.can_stop


def test_it_listens_only_while_it_was_started(source: OtlpSource) -> None:
    resting = OtlpSource(RateBook(VENDORS), 1)
    assert not resting.look().available and "running supervisor" in resting.look().reason and not resting._receiver.is_open
    assert source.look().available
    source.close()
    assert not source.look().available and not source._receiver.is_open  # a look that was still under way opens nothing again


def test_what_the_real_claude_code_told_is_its_transcripts_money_to_the_nano_dollar_however_often_it_is_told(source: OtlpSource) -> None:
    tell(source, "claude-code")
    tell(source, "claude-code")
    (one,) = source.look().sightings
    assert one.usage is not None and one.usage.cost_usd == pytest.approx(0.0706986, abs=1e-12)
    assert (one.session, one.process, one.model, one.unpriced) == (CLAUDE_SESSION, None, "claude-sonnet-4-5", 0)
    assert (one.usage.tokens, one.usage.iterations, one.status) == (43631, 6, "unverified")
    assert "1 sub-agents were heard of" in one.detail and one.unlinked and one.name == "claude-code ca2200bd"


def test_codex_tells_tokens_and_they_are_priced_like_its_transcripts(source: OtlpSource) -> None:
    tell(source, "codex")
    tell(source, "codex")
    (one,) = [s for s in source.look().sightings if s.session.startswith("01a1ffcf")]
    assert one.usage is not None and (one.usage.tokens, one.usage.iterations) == (10240, 2)
    assert one.usage.cost_usd == pytest.approx(0.005684) and one.unpriced == 0


def test_a_model_without_a_price_is_unpriced_and_never_free(source: OtlpSource) -> None:
    names = ("input_token_count", "output_token_count", "cached_token_count", "cache_write_token_count")
    said: dict[str, object] = {name: 5 if name in names[:2] else 0 for name in names}
    said |= {"conversation.id": "c-1", "event.name": "codex.sse_event", "event.kind": "response.completed", "model": "no-such-model"}
    attributes = [{"key": k, "value": {"stringValue": str(v)}} for k, v in said.items()]
    body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"attributes": attributes}]}]}]}
    source.book.take(otlp_json.items("logs", json.dumps(body).encode()))
    (one,) = source.look().sightings
    assert one.usage is not None and (one.usage.tokens, one.usage.cost_usd, one.unpriced) == (10, 0.0, 1)


def test_a_session_that_was_told_of_just_now_is_left_to_those_who_know_more(source: OtlpSource, monkeypatch: pytest.MonkeyPatch) -> None:
    tell(source, "claude-code")
    assert source.look().sightings[0].status == "unverified"
    monkeypatch.setattr(otlp, "YOUNG_S", 3600.0)
    assert source.look().sightings[0].status == "young"


def test_nothing_that_was_said_in_a_session_is_kept(source: OtlpSource) -> None:
    tell(source, "codex")  # its tool results tell commands and their output in clear
    assert "TODO" in (DATA / "codex" / "otlp-http-json.jsonl").read_text()
    assert "TODO" not in repr(source.look()) + repr(source.book._sessions) + repr(source.book._answers)


def test_it_is_reached_on_loopback_and_says_what_it_refused(source: OtlpSource) -> None:
    source.look()
    port = source._receiver.port
    for path, status in (("/v1/logs", 200), ("/v1/other", 404)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", path, "{}", {"Content-Type": "application/json"})
        assert connection.getresponse().status == status
        connection.close()
    assert "Refused so far: 1." in source.look().reason and source.refused() == ["refused 1 times: a path that is not served"]
    assert source.refused() == []


def test_a_port_that_is_closed_again_is_never_called_listening(source: OtlpSource) -> None:
    assert source.look().available
    receiver, thread = source._receiver, source._receiver._thread
    assert receiver._loop is not None and thread is not None
    receiver._loop.call_soon_threadsafe(receiver._ended.set)
    thread.join()
    report = source.look()
    assert (report.available, report.broken) == (False, True) and "It is tried again" in report.reason
    source._tried = -1e9
    assert source.look().available and receiver.is_open
