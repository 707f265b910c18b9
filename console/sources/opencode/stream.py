"""OpenCode as a started program: the Agent Client Protocol (JSON-RPC on lines, both ways), or ``run --format json`` for one prompt.

Made for version 1.18; every field is optional and unknown methods are passed over. Our plug-in in it tells each answer of a model as it is
given, those of sub-agents too. Without the plug-in the program's own sums are charged: of a talk when a turn ends, else with each step.
"""

from __future__ import annotations

import json
from typing import Any

from console.domain.spend import MOST_TOKENS, Answer, Tokens
from console.sources.activity.acp import AcpStream, tell_call
from console.sources.activity.program_stream import Heard, bounded, count, part, shown, word
from console.sources.opencode.hook import ANSWER
from console.sources.opencode.transcripts import SOURCE, tokens_of
from console.sources.reading import reported

JUDGED = ("--no-pure",)
"""The option that loads our plug-in; ``--pure`` loads none."""
UNJUDGED = ("--pure",)
WORDS = ("acp",)
WORDS_ONCE = ("run", "--format", "json")
_MOST_USD = 1e9


def settings(model: str, base_url: str, *, judged: bool) -> str:
    """Return the word that configures it. Where its calls are judged it allows none itself: our plug-in does, once it is loaded."""
    made: dict[str, Any] = {"permission": {"*": "ask" if judged else "allow"}, "share": "disabled", "autoupdate": False}
    if model:
        made["model"] = model
    if base_url:
        made["provider"] = {"openai": {"options": {"baseURL": base_url}}}
    return json.dumps(made)


class _Usage:
    """What one program used: answers by our plug-in's word, or else sums by its own."""

    def __init__(self) -> None:
        self._is_told = False
        """Our plug-in tells what answers use."""
        self.usd, self._tokens = 0.0, 0
        """By the program's own word."""

    def told(self, said: dict[str, Any], root: str) -> Heard:
        """What our plug-in says about an answer; ``root``: the session that is talked to."""
        self._is_told = True
        try:
            tokens = tokens_of(part(said, "tokens"))
            at = count(said.get("time"), "created") / 1000
        except ValueError:
            tokens, at = Tokens(-1), 0.0
        if not tokens.is_sane():
            return _odd(said)
        name, session = word(said, "id"), word(said, "sessionID")
        if not tokens.total or not name:
            return Heard()
        model = f"{word(said, 'providerID', 100)}/{word(said, 'modelID')}"
        agent = "" if session == root else session
        return Heard(answers=[Answer(SOURCE, name, at, model, "", root, agent, "", tokens, reported(said.get("cost")))])

    def say(self, usd: object) -> None:
        """The program's own sum in dollars."""
        if isinstance(usd, int | float) and not isinstance(usd, bool) and 0 <= usd < _MOST_USD:
            self.usd = max(self.usd, float(usd))

    def step(self, heard: Heard, said: dict[str, Any]) -> None:
        """What a step of one prompt came to."""
        cost = said.get("cost")
        self.say(self.usd + cost if isinstance(cost, int | float) else None)
        try:
            tokens = tokens_of(part(said, "tokens"))
        except ValueError:
            tokens = Tokens(-1)
        heard.events += [] if tokens.is_sane() else _odd(said).events
        self.sum_up(heard, tokens.total if tokens.is_sane() else 0)
        if said.get("reason") == "stop":
            heard.events.append({"kind": "turn", "ok": True, "text": "completed", "total_usd": self.usd})

    def sum_up(self, heard: Heard, tokens: int) -> None:
        """Add its own sums, unless our plug-in tells each answer."""
        self._tokens += max(0, tokens)
        if not self._is_told:
            heard.total_usd, heard.total_tokens = self.usd or None, min(self._tokens, MOST_TOKENS)


class OpenCodeStream(AcpStream):
    """One program's stream. Not thread-safe."""

    source = SOURCE

    def __init__(self) -> None:
        super().__init__()
        self._usage = _Usage()

    def _model(self, result: dict[str, Any]) -> str:
        options = result.get("configOptions")
        chosen = [one for one in options if isinstance(one, dict) and one.get("id") == "model"] if isinstance(options, list) else []
        return word(chosen[0], "currentValue") if chosen else ""

    def _turn_over(self, failed: dict[str, Any], result: dict[str, Any]) -> Heard:
        heard = super()._turn_over(failed, result)
        heard.events[-1]["total_usd"] = self._usage.usd or None
        self._usage.sum_up(heard, count(part(result, "usage"), "totalTokens"))
        return heard

    def _notified(self, method: str, params: dict[str, Any]) -> Heard:
        if method == ANSWER:
            return self._usage.told(params, self.session)
        update = part(params, "update")
        if update.get("sessionUpdate") == "usage_update":
            self._usage.say(part(update, "cost").get("amount"))
        return super()._notified(method, params)

    def _told_otherwise(self, record: dict[str, Any]) -> Heard:
        """``run --format json``: one prompt."""
        kind, said = word(record, "type", 60), part(record, "part")
        heard = Heard()
        if not self.session and (session := word(record, "sessionID")):
            self.session = session
            heard.events.append({"kind": "session", "program": SOURCE, "session": session, "model": "", "version": ""})
        if kind in ("text", "reasoning"):
            role = "assistant" if kind == "text" else "thinking"
            heard.events.append({"kind": "message", "role": role, "text": bounded(said.get("text")), "parent": ""})
        elif kind == "tool_use":
            call_id, state = word(said, "callID"), part(said, "state")
            tell_call(heard, call_id, word(said, "tool"), state.get("input"))
            failed = state.get("status") == "error"
            text = bounded(state.get("error" if failed else "output"))
            heard.events.append({"kind": "tool_result", "id": call_id, "text": text, "error": failed, "parent": ""})
        elif kind == "step_finish":
            self._usage.step(heard, said)
        elif kind == "error":
            heard.events.append({"kind": "trouble", "text": shown(record.get("error"), 2000)})
        return heard


def _odd(said: dict[str, Any]) -> Heard:
    return Heard([{"kind": "trouble", "text": f"usage that no model gives was not counted: {shown(said, 300)}"}])
