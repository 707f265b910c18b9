"""Egress: the one door of this room. A list becomes what every proxied sandbox reaches; a sandbox gets its port, or loses it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from console.domain.errors import ConsoleError, Unavailable, UsageProblem
from console.domain.network import Allowlist, AllowlistEntry, EgressRecord
from console.egress.access_log import AccessLog
from console.egress.addresses import host_addresses
from console.egress.answers import Applied, Availability, Validation
from console.egress.children import identities
from console.egress.envoy.config import whole
from console.egress.envoy.files import Files
from console.egress.envoy.fragments import Slot, Surroundings
from console.egress.envoy.process import EnvoyProcess
from console.egress.live import LiveConfig, shrank
from console.egress.portals import Portals
from console.egress.relays import Relays
from console.egress.resolver_process import ResolverProcess, system_servers


def _nobody_asked(agent_id: str) -> None:
    """Ignore a relay's death."""


def _nobody_listens(agent_id: str, words: str) -> None:
    """Ignore a relay's notice."""


def _surroundings(resolver: ResolverProcess) -> Surroundings:
    return Surroundings(host_addresses(), resolver.address)


class Egress(Portals):
    """Run Envoy, its name server and one relay for each sandbox. Every method may be called from any thread and blocks.

    Parameters:

    * ``hosts`` answers names without a query; ``resolver`` is the name server to ask instead of the system's.
    * ``netns`` is the network namespace in which Envoy lives (None: ours).
    * ``engine`` is the socket of a container engine, for hosts without Envoy; ``state_dir`` tells which image is ours.
    * ``on_relay_death(agent_id)``: a relay died, so its sandbox has no network until ``attach`` is called again.
    * ``on_words(agent_id, words)``: a notice of a relay for people.
    """

    def __init__(
        self,
        dir: Path,
        run_dir: Path,
        on_record: Callable[[EgressRecord], None],
        *,
        on_relay_death: Callable[[str], None] = _nobody_asked,
        on_words: Callable[[str, str], None] = _nobody_listens,
        hosts: Mapping[str, Sequence[str]] | None = None,
        resolver: tuple[str, int] | None = None,
        netns: Path | None = None,
        relay_cgroup: Path | None = None,
        engine: str = "",
        state_dir: Path | None = None,
    ) -> None:
        super().__init__()
        del run_dir  # the sockets lie in the egress folder, reached by relative paths: no length limit, one folder to guard
        envoy, relay = identities()
        self._files = Files(dir, envoy)
        self._envoy = EnvoyProcess(self._files, envoy, netns, engine, state_dir)
        # In another network namespace the system's servers lead elsewhere, or to a resolver on a loopback that is not theirs.
        servers = [resolver] if resolver else ([] if netns else system_servers())
        self._resolver = ResolverProcess(relay, netns, dict(hosts or {}), servers)
        self._valid: tuple[tuple[AllowlistEntry, ...], Surroundings] | None = None
        self._live = LiveConfig(self._files, self._envoy.admin, self._resolver.allow)
        self._log = AccessLog(self._files.access_log, on_record, lambda: self._live.allowlist, self._envoy.admin.reopen_logs)
        self._relays = Relays(relay, dir, relay_cgroup, self._forget, on_relay_death, on_words)

    def available(self) -> Availability:
        """Whether PROXIED can be enforced here, and by which Envoy."""
        return self._envoy.available()

    def start(self) -> None:
        """Starts name server, Envoy and log with an empty list. Raises Unavailable with what is missing."""
        can = self.available()
        if not can.ok:
            raise Unavailable(f"Envoy is not available, because {can.reason}.", can.remedy)
        with self._config_lock:
            if self._started:
                return
            self._started = True
            try:
                self._files.prepare()
                self._resolver.start()
                self._live.around = _surroundings(self._resolver)
                self._log.start()
                self._relays.start()
                if not self._envoy.start():
                    raise Unavailable(f"Envoy does not start: {self._envoy.health()[1]}", "watchfloor doctor looks at what is missing.")
            except (OSError, ConsoleError) as error:
                self.stop()
                if isinstance(error, ConsoleError):
                    raise
                raise Unavailable(f"The proxy cannot be set up: {error}.", "Fix the state directory's permissions.") from error

    def stop(self) -> None:
        """Cuts every sandbox and ends every process of this room."""
        self._end_portals()
        with self._config_lock:
            self._envoy.stop()
            self._resolver.stop()
            self._log.stop()
            self._live.restart()

    def validate(self, allowlist: Allowlist) -> Validation:
        """Asks the real Envoy (``--mode validate``). Nothing changes."""
        try:
            for entry in allowlist.entries:
                entry.check()
        except UsageProblem as problem:
            return Validation(False, str(problem), 0.0)
        if not (can := self.available()).ok:
            return Validation(False, f"Envoy is not available, because {can.reason}. {can.remedy}", 0.0)
        around = _surroundings(self._resolver)
        try:
            said = self._envoy.validate(whole([Slot("s0", "validation")], allowlist, around))
            self._valid = (allowlist.entries, around) if said.ok else None
            return said
        except OSError as error:
            return Validation(False, f"it could not be written down for Envoy: {error}.", 0.0)

    def apply(self, allowlist: Allowlist) -> Applied:
        """Makes a list the live one. ``ok`` only when Envoy confirmed it for every sandbox; else the old one is live, with Envoy's words.

        When anything was taken away, every connection of every sandbox is cut.
        """
        began = time.monotonic()
        with self._config_lock:
            old = self._live.allowlist
            is_known = self._valid == (allowlist.entries, _surroundings(self._resolver))  # asked a moment ago: nothing can have changed
            said = Validation(True, "", 0.0) if is_known else self.validate(allowlist)
            words = said.words
            if said.ok:
                words = self._put(allowlist)
            sandboxes = len(self._live.slots)
            if words:
                return Applied(old.version, (time.monotonic() - began) * 1000, 0, False, words)
        # Measured: a tunnel lives on after its entry is removed, since routes are read only when a request begins.
        cut = self._relays.cut_all() if shrank(old, allowlist) else 0
        ms = (time.monotonic() - began) * 1000
        ended = f", {cut} connections cut" if cut else ""
        return Applied(allowlist.version, ms, sandboxes, True, f"Live in {sandboxes} sandboxes after {ms:.0f} ms{ended}.")

    def _put(self, new: Allowlist) -> str:
        """Why it did not work, or empty."""
        if not self._started:
            return "Envoy was not started."
        try:
            self._live.put(new, _surroundings(self._resolver))
        except (ConsoleError, OSError) as error:
            return str(error)
        return ""

    def config_text(self) -> str:
        """The generated configuration as Envoy would read it in one file; with no sandbox, as it would be for one."""
        with self._config_lock:
            slots = list(self._live.slots.values()) or [Slot("s0", "example")]
            return json.dumps(whole(slots, self._live.allowlist, self._live.around), indent=2)

    def health(self) -> tuple[str, str]:
        """(healthy | starting | failed | unavailable, why)."""
        if not (can := self.available()).ok:
            return "unavailable", f"not available, because {can.reason}"
        if not self._started:
            return "starting", "not started"
        state, detail = self._envoy.health()
        if state == "healthy" and self._resolver.pid is None:
            return "failed", "the name server of the proxy does not run; it is restarted"
        if state == "healthy" and not self._log.following:
            return "failed", "the access log is not being read"
        unreadable = f"; {self._log.unreadable} unreadable log lines" if self._log.unreadable else ""
        return state, detail + unreadable
