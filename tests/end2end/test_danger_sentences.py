"""Words that name dangerous operations: an operator confirms them with a reason, an agent is refused, and all of it is on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.api.agents.programs import ProgramItem, ProgramsBody
from console.api.messages import LaunchBody
from console.domain.errors import Unconfirmed
from console.settings.options import save_options
from tests.fakes.instance import Instance, until
from tests.fakes.standing import standing_instance

QUIET = Path(__file__).parents[1] / "fakes" / "quiet_program.py"
"""Stands for Claude Code: it reads what it is told and prints it, and asks no model."""
Say = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def standing() -> Iterator[Instance]:
    given = {"programs.claude_code": str(QUIET), "programs.memory_free_min_mib": 0}
    with standing_instance(prepare=lambda folder: save_options(folder / "settings.json", given)) as instance:
        yield instance


def kinds(it: Instance, word: str) -> list[str]:
    return sorted(row.kind for row in it.api.audit(q=word).rows if row.kind.startswith("danger."))


def test_a_command_that_names_one_starts_only_with_a_reason(it: Instance, watchfloor: Say) -> None:
    words = ("--", "sh", "-c", "sleep 300; echo never: TerraForm\u200b  'apply'")
    code, out, err = watchfloor("run", *words)
    assert code == 4 and out == "" and "change infrastructure" in err and "terraform apply" in err and "--dangerous-ok REASON" in err
    assert not [a for a in it.api.fleet().agents if a.ended_at is None], "nothing was started"
    code, out, err = watchfloor("run", "--dangerous-ok", "rehearsal-7", *words)
    assert code == 0, err
    assert it.agent(out.strip()).state == "running"
    until(lambda: kinds(it, "infrastructure") == ["danger.confirmed", "danger.shown"])
    [row] = it.api.audit(q="rehearsal-7").rows
    assert row.actor.startswith("operator:") and "terraform apply" in row.what


def test_of_a_batch_nothing_starts_when_one_prompt_names_one(it: Instance, watchfloor: Say, tmp_path: Path) -> None:
    file = tmp_path / "batch.jsonl"
    rows = [{"agent": "claude-code", "prompt": "Tidy up"}, {"agent": "claude-code", "prompt": "then gh\npr merge 12", "once": True}]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    code, _, err = watchfloor("run", "--batch", str(file))
    assert code == 4 and "Item 2" in err and "merge or approve a change" in err and "(prompt)" in err
    assert not [a for a in it.api.fleet().agents if a.ended_at is None]
    code, out, _ = watchfloor("run", "--batch", str(file), "--dry-run")
    assert code == 4 and "danger  merge or approve a change" in out and "refused until it is confirmed" in out
    code, out, _ = watchfloor("run", "--batch", str(file), "--dry-run", "--dangerous-ok", "reviewed")
    assert code == 0 and "danger  merge or approve a change" in out


def test_every_message_is_read_and_one_that_names_one_is_not_sent_unconfirmed(it: Instance, watchfloor: Say) -> None:
    started = it.api.start_programs(ProgramsBody(items=[ProgramItem(agent="claude-code", prompt="Begin")]))
    agent = started.items[0].id
    it.says(agent, "Begin")
    with pytest.raises(Unconfirmed) as refused:
        it.api.say(agent, "now: git push \u2014force origin main")
    assert refused.value.http_status == 428 and "force push" in refused.value.what and "git push --force" in refused.value.what
    assert "force origin" not in it.output(agent)
    assert watchfloor("say", agent, "g\u0456t push --force")[0] == 4
    assert watchfloor("say", agent, "git push --force origin main", "--dangerous-ok", "the branch is mine")[0] == 0
    it.says(agent, "force origin main")
    it.api.say(agent, "and git push origin main")
    until(lambda: kinds(it, "force push") == ["danger.confirmed", "danger.shown", "danger.shown"])


def test_an_agent_starts_no_child_with_such_words_and_confirms_nothing(it: Instance) -> None:
    agent = it.python(
        "def tries(argv, **more):\n"
        "    try: print('started', agent.spawn(argv, **more)['id'], flush=True)\n"
        "    except client.Refused as error: print('refused', error.status, error, flush=True)\n"
        "words = 'ylppa mrofarret'[::-1]\n"
        "tries(['sh', '-c', words])\n"
        "tries(['sh', '-c', 'sleep 9; \"$X\" apply'], env={'X': words})\n"
        "tries(['sh', '-c', words], dangerous_ok='I may')\n"
        "print('done', flush=True); time.sleep(300)"
    )
    said = it.says(agent, "done")
    assert said.count("refused 403") == 3 and "started" not in said
    until(lambda: "danger.refused" in kinds(it, agent))


def test_a_list_of_ones_own_adds_and_a_broken_one_takes_nothing_away(it: Instance) -> None:
    file = it.places.policy_file.with_name("dangers.json")
    file.write_text(json.dumps({"dangers": [{"name": "open the gate", "why": "it lets them in", "program": "gatectl", "words": "open"}]}))
    with pytest.raises(Unconfirmed, match="open the gate"):
        it.api.launch(LaunchBody(argv=["sh", "-c", "true gatectl  OPEN"]))
    file.write_text("{")
    for words, name in (("gatectl open", "open the gate"), ("terraform destroy", "infrastructure")):
        with pytest.raises(Unconfirmed, match=name):
            it.api.launch(LaunchBody(argv=["echo", words]))
    assert any("dangers.json" in notice for notice in it.api.status().notices)
    file.unlink()
    it.state_becomes(it.launch("echo", "gatectl open"), "ended")
