"""The webhook of one instance: what waits, and one worker that delivers it. It sleeps until an alert comes."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from console.api.alerts import AlertView, WebhookTestView, WebhookView
from console.credentials.keyring_store import Store
from console.domain.engine.command import Record
from console.domain.errors import ConsoleError, NotFound
from console.domain.words import counted
from console.killswitch.store.causes import boot_id
from console.services.notices.shown import Notice
from console.services.records.record_writer import Scribe
from console.services.webhook.address import Address
from console.services.webhook.outbox import DAY_S, MOST, Outbox, Waiting
from console.services.webhook.sending import GONE, Outcome, deliver, new_secret, secret_bytes, shown_url

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 3600.0
"""Pauses after a failure: doubled each time, give or take a half, so that many hosts do not come back at once."""


class Webhook:
    """On the loop's thread; ``take`` never blocks."""

    __slots__ = (
        "_outbox", "_address", "_scribe", "_notice", "_wake", "_turn", "_boot_id", "_fails", "_not_before", "_trouble", "_delivered_at",
        "_is_disk_full"
    )  # fmt: skip

    def __init__(self, state_dir: Path, keyring: Store, scribe: Scribe, notice: Notice) -> None:
        self._boot_id = boot_id()
        self._outbox, self._address = Outbox(state_dir / "webhook", self._boot_id), Address(state_dir / "webhook.json", keyring)
        self._scribe, self._notice = scribe, notice
        self._wake, self._turn = asyncio.Event(), asyncio.Lock()
        self._fails, self._not_before, self._trouble = 0, 0.0, ""
        self._delivered_at: float | None = None
        self._is_disk_full = False

    def take(self, alert: AlertView) -> None:
        """One more to deliver; dropped when no webhook is set."""
        if self._address.kept.url:
            self._outbox.add(alert.id, _bytes(alert))
            self._wake.set()

    async def run(self) -> None:
        """Deliver what waits, forever. Woken by an alert, or by the end of a pause while some wait."""
        if broken := await self._outbox.load():
            await self._give_up(broken, time.time(), "their files could not be read")
        while True:
            async with self._turn:
                await self._save()
                if (pause := self._pause()) == 0.0:
                    await self._try_next()
                    continue
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            self._wake.clear()

    async def _save(self) -> None:
        """To disk before anything is sent. What the disk refuses is sent all the same."""
        if over := self._outbox.over():
            await self._give_up(len(over), over[0].at, f"more than {MOST} waited")
            await self._outbox.remove(over)
        try:
            await self._outbox.save()
            self._is_disk_full = False
        except OSError as error:
            if not self._is_disk_full:
                self._notice(f"Alerts for the webhook wait in memory, because the disk refuses them: {error.strerror}.")
            self._is_disk_full = True

    def _pause(self) -> float | None:
        """Seconds until the next try; None: nothing is sent until something happens."""
        one, kept = self._outbox.next(), self._address.kept
        if one is None or not kept.url or kept.stopped:
            return None
        return max(0.0, max(one.due, self._not_before) - time.monotonic())

    async def _try_next(self) -> None:
        one = self._outbox.next()
        if one is None:
            return
        outcome = await self._post(one.alert_id, one.body)
        if outcome.delivered:
            self._fails, self._not_before, self._trouble, self._delivered_at = 0, 0.0, "", time.time()
            await self._outbox.remove([one])
        else:
            await self._failed(one, outcome)

    async def _failed(self, one: Waiting, outcome: Outcome) -> None:
        self._fails, one.tries = self._fails + 1, one.tries + 1
        self._not_before, one.due = time.monotonic() + pause_after(self._fails), time.monotonic() + pause_after(one.tries)
        if not self._trouble:
            self._notice(f"The webhook takes no alerts: {outcome.words}. They are tried again for a day: watchfloor webhook status.")
        self._trouble = outcome.words
        if one.age_s(self._boot_id) >= DAY_S:
            await self._give_up(1, one.at, f"{one.alert_id} was not delivered within a day ({outcome.words})")
            await self._outbox.remove([one])  # only now: what is lost is on record
        if outcome.status == GONE:
            await self._address.note(stopped=True)
            self._notice("The webhook's receiver answered 410 Gone. Nothing is sent until a test succeeds: watchfloor webhook test.", "red")

    async def _post(self, alert_id: str, body: bytes) -> Outcome:
        try:
            url, secret = await self._address.secret()
        except ConsoleError as error:
            return Outcome(False, error.what.rstrip("."))
        return await deliver(url, secret, alert_id, body)

    async def _give_up(self, number: int, since: float, why: str) -> None:
        kept = self._address.kept
        await self._address.note(given_up=kept.given_up + number, given_up_since=kept.given_up_since or since)
        words = f"{counted(number, 'alert')} for the webhook given up: {why}"
        self._scribe.record(Record("supervisor", "webhook.given_up", words, verdict="failed"))
        self._notice(f"{words}. watchfloor webhook status shows more.", "red")

    def view(self, secret: str = "") -> WebhookView:
        """The webhook now. ``secret``: for the one answer that shows a new one."""
        pause, waiting = self._pause(), self._outbox.waiting
        return WebhookView(
            **asdict(self._address.kept),
            waiting=len(waiting),
            waiting_since=min((one.at for one in waiting), default=None),
            trouble=self._trouble,
            next_try_s=None if pause is None else round(pause, 1),
            delivered_at=self._delivered_at,
            secret=secret,
        )

    async def set(self, url: str, secret: str, by: str) -> WebhookView:
        """Deliver there from now on, what waits included. Recorded first. Raises UsageProblem, NotRecorded, and what the keyring raises."""
        made = "" if secret else new_secret()
        secret_bytes(secret or made)
        words = f"alerts go to {shown_url(url)}"
        self._address.learn(url, secret or made)
        await asyncio.to_thread(self._scribe.record_first, Record(by, "webhook.set", words, verdict="ok"))
        async with self._turn:
            await self._address.put(url, secret or made, by)
            self._begin_again()
        return self.view(made)

    async def remove(self, by: str) -> WebhookView:
        """Send nothing any more; what waits is dropped. Raises NotFound, NotRecorded, and what the keyring raises."""
        words = f"alerts go to {self._set_url()} no more; {counted(len(self._outbox.waiting), 'alert')} dropped"
        await asyncio.to_thread(self._scribe.record_first, Record(by, "webhook.removed", words, verdict="ok"))
        async with self._turn:
            await self._address.clear()
            await self._outbox.remove(list(self._outbox.waiting))
            self._begin_again()
        return self.view()

    async def test(self, alert: AlertView) -> WebhookTestView:
        """Send one alert now. After a success, what waits follows at once, and what was given up is shown no more. Raises NotFound."""
        self._set_url()
        outcome = await self._post(alert.id, _bytes(alert))
        if outcome.delivered:
            self._delivered_at = time.time()
            await self._address.note(given_up=0, given_up_since=None, stopped=False)
            self._begin_again()
        else:
            self._trouble = outcome.words
        return WebhookTestView(delivered=outcome.delivered, status=outcome.status, ms=outcome.ms, words=outcome.words)

    def _set_url(self) -> str:
        if not self._address.kept.url:
            raise NotFound("No webhook is set.", "watchfloor webhook set URL sets one.")
        return self._address.kept.url

    def _begin_again(self) -> None:
        """What waits is due now."""
        self._fails, self._not_before, self._trouble = 0, 0.0, ""
        for one in self._outbox.waiting:
            one.due = 0.0
        self._wake.set()


def pause_after(fails: int) -> float:
    """Return the seconds to wait after so many failures, with jitter."""
    pause: float = min(FIRST_PAUSE_S * 2.0 ** (min(fails, 20) - 1), LONGEST_PAUSE_S)
    return pause * random.uniform(0.5, 1.5)


def _bytes(alert: AlertView) -> bytes:
    """The body: JSON in ASCII, so that no letter of an agent's reaches a receiver raw."""
    return json.dumps(alert.as_data(), ensure_ascii=True, separators=(",", ":")).encode("ascii")
