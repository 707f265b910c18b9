"""One delivery of the webhook: which URLs may be used, the signature as an independent library reads it, and receivers that are broken."""

from __future__ import annotations

import json
import time

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from console.domain.errors import UsageProblem
from console.services.webhook import sending
from tests.fakes.webhook_receiver import raw_receiver, receiving

SECRET = sending.new_secret()
BODY = b'{"event":"test"}'


def test_an_independent_library_accepts_the_signature_and_nothing_that_was_changed() -> None:
    at = int(time.time())
    headers = {"webhook-id": "panic-1", "webhook-timestamp": str(at), "webhook-signature": sending.signature(SECRET, "panic-1", at, BODY)}
    assert Webhook(SECRET).verify(BODY, headers) == {"event": "test"}
    for key, value in (("webhook-id", "panic-2"), ("webhook-timestamp", str(at - 1))):
        with pytest.raises(WebhookVerificationError):
            Webhook(SECRET).verify(BODY, headers | {key: value})
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(BODY + b" ", headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(sending.new_secret()).verify(BODY, headers)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://10.0.0.1/",
        "http://127.0.0.1.example.com/",
        "http://localhost.example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://",
        "https:///path",
        "https://exa mple.com/",
        "https://example.com/\r\nX-Evil: 1",
        "https://example.com/\x1b[2J",
        "https://example.com/#part",
        "https://example.com:99999/",
        "https://[::1/",
        "https://example.com\\@evil.example/",
        "not a url",
        "",
    ],
)
def test_a_url_that_is_not_https_or_leaves_this_host_unencrypted_is_refused(url: str) -> None:
    with pytest.raises(UsageProblem):
        sending.checked_url(url)


@pytest.mark.parametrize(
    "url", ["https://example.com/x", "http://127.0.0.1:8787/x", "http://[::1]:8/", "http://localhost/", "http://127.9.9.9/"]
)
def test_https_and_this_host_are_accepted(url: str) -> None:
    assert sending.checked_url(url).hostname


def test_a_shown_url_holds_nothing_but_scheme_host_and_port() -> None:
    assert sending.shown_url("https://me:pass@example.com:8443/services/T0/B0/XXXX?key=abc") == "https://example.com:8443/[hidden]"
    assert sending.shown_url("http://[::1]:8/") == "http://[::1]:8/"
    for secret in (
        "https://ntfy.sh/my-own-topic",
        "https://ntfy.sh//my-own-topic",
        "https://ntfy.sh?topic=my-own-topic",
        "https://ntfy.sh/[hidden]",
    ):
        assert sending.shown_url(secret) == "https://ntfy.sh/[hidden]"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "whsec_???", "c" * 32, "whsec_" + "A" * 200])
def test_what_is_no_secret_of_24_to_64_bytes_is_refused(secret: str) -> None:
    with pytest.raises(UsageProblem):
        sending.secret_bytes(secret)


async def test_a_delivery_has_the_headers_of_the_standard_and_is_verified_by_the_library() -> None:
    with receiving() as receiver:
        outcome = await sending.deliver(receiver.url, SECRET, "test-1", BODY)
        assert outcome.delivered and outcome.status == 204, outcome
        assert receiver.events(SECRET) == ["test"]
        headers, _ = receiver.got[0]
        assert headers["webhook-id"] == "test-1" and headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    with receiving() as trap, receiving() as receiver:
        receiver.status, receiver.headers = status, {"location": trap.url}
        outcome = await sending.deliver(receiver.url, SECRET, "test-1", BODY)
        assert not outcome.delivered and outcome.status == status
        assert len(receiver.got) == 1 and not trap.got
        assert outcome.words == f"the receiver answered {status}: redirects are not followed, so set the URL that it leads to"


async def test_an_answer_is_shown_in_letters_that_print_alone() -> None:
    with receiving() as receiver:
        receiver.status, receiver.answer = 500, b"<b>\x1b[31m\xe2\x80\xae\r\nred</b>" + b"x" * 5000
        outcome = await sending.deliver(receiver.url, SECRET, "test-1", BODY)
        assert outcome.words.isascii() and outcome.words.isprintable() and len(outcome.words) < 300
        assert "500" in outcome.words


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\xff garbage \x1b[2J\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 204 No Content\r\nX: " + b"y" * 300_000,
    ],
)
async def test_garbage_is_a_failure_in_words_that_print(said: bytes) -> None:
    with raw_receiver(said) as port:
        outcome = await sending.deliver(f"http://127.0.0.1:{port}/", SECRET, "test-1", BODY)
    assert not outcome.delivered and outcome.words.isascii() and outcome.words.isprintable(), outcome
    assert "HTTP" in outcome.words and outcome.words.endswith(": does a web server listen at this URL?")


@pytest.mark.parametrize("drip", [b"", b"x-more: 1\r\n"])
async def test_a_receiver_that_hangs_or_drips_its_headers_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch, drip: bytes) -> None:
    monkeypatch.setattr(sending, "WHOLE_S", 1.0)
    with raw_receiver(b"HTTP/1.1 200 OK\r\n" if drip else b"", drip=drip) as port:
        began = time.monotonic()
        outcome = await sending.deliver(f"http://127.0.0.1:{port}/", SECRET, "test-1", BODY)
    assert not outcome.delivered and time.monotonic() - began < 5
    assert "1 s" in outcome.words or "Timeout" in outcome.words


async def test_an_endless_body_is_read_up_to_64_kib() -> None:
    with raw_receiver(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n", drip=b"z" * 16384) as port:
        outcome = await sending.deliver(f"http://127.0.0.1:{port}/", SECRET, "test-1", BODY)
    assert outcome.delivered and outcome.ms < 9000


async def test_a_body_that_is_compressed_a_thousandfold_is_not_unpacked() -> None:
    with receiving() as receiver:
        receiver.status, receiver.answer, receiver.headers = 500, b"\x1f\x8b not gzip", {"content-encoding": "gzip"}
        outcome = await sending.deliver(receiver.url, SECRET, "test-1", BODY)
        assert outcome.status == 500


async def test_a_closed_port_is_a_failure() -> None:
    with receiving() as receiver:
        url = receiver.url
    outcome = await sending.deliver(url, SECRET, "test-1", BODY)
    assert not outcome.delivered and outcome.status is None
    assert outcome.words == "no connection: nothing listens at this URL, or its name is not known (All connection attempts failed)"


async def test_a_receiver_that_closes_is_told_as_one() -> None:
    with raw_receiver(b"", closes=True) as port:
        outcome = await sending.deliver(f"http://127.0.0.1:{port}/", SECRET, "test-1", BODY)
    assert not outcome.delivered and outcome.words.startswith("the receiver closed the connection without an HTTP answer")


async def test_no_proxy_of_the_environment_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy, receiving() as receiver:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert (await sending.deliver(receiver.url, SECRET, "test-1", json.dumps({}).encode())).delivered
        assert not proxy.got
