"""``watchfloor run --agent PROGRAM``: starting a program that is talked to, one or a batch, with its worst-case reach said first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from console.api.agents import programs as pm
from console.api.client.api_client import ApiClient
from console.cli.link import build
from console.cli.stop.rearm import hint
from console.cli.syntax import did_you_mean
from console.cli.terminal import out
from console.cli.terminal.plain import plain
from console.domain.conversation import Program
from console.domain.errors import ExitCode, UsageProblem
from console.wording.agent_kinds import EXAMPLE, TITLES

BATCH_BYTES = 8 << 20
_ITEM = f"{{agent: {EXAMPLE}, prompt: ...}}"


def item_of(agent: str, prompt: str, **fields: Any) -> pm.ProgramItem:
    """One item from the command line. Raises UsageProblem that names the field."""
    known = [program.value for program in Program]
    if agent not in known:
        named = f"--agent starts {', '.join(known[:-1])} and {known[-1]}."
        if agent not in TITLES:
            near = did_you_mean(agent, known)
            raise UsageProblem(f"{agent[:60]!r} is no program that --agent knows.{near}", f"{named} Others: watchfloor run -- COMMAND.")
        what = f"{TITLES[agent]} cannot be started with --agent, because Watchfloor cannot send it messages."
        raise UsageProblem(what, f"watchfloor run -- {agent} starts it as any command. {named}")
    if not prompt.strip():
        raise UsageProblem("There is no prompt.", f'Write it behind --: watchfloor run --agent {agent} -- "Tidy up the tests"')
    return build(pm.ProgramItem, agent=agent, prompt=prompt, **fields)


def batch_of(file: str, defaults: dict[str, Any]) -> list[pm.ProgramItem]:
    """The items of a file: JSON lines, or YAML with a list. ``defaults``: of the command line. UsageProblem names item and field."""
    rows = _rows(file)
    if not rows:
        raise UsageProblem(f"{file} holds no item.", f"One JSON object a line, or a YAML list: {_ITEM}.")
    if len(rows) > pm.MOST_ITEMS:
        raise UsageProblem(f"{file} holds {len(rows)} items; at most {pm.MOST_ITEMS} are started at once.", "Split it.")
    items = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UsageProblem(f"Item {number} of {file} is no object.", f"Write {_ITEM}.")
        try:
            items.append(build(pm.ProgramItem, **{**defaults, **{str(k): v for k, v in row.items()}}))
        except UsageProblem as error:
            raise UsageProblem(f"Item {number} of {file}: {error.what}", "Nothing was started.") from error
    return items


def _rows(file: str) -> list[Any]:
    try:
        with Path(file).open("rb") as source:
            data = source.read(BATCH_BYTES + 1)
        if len(data) > BATCH_BYTES:
            raise UsageProblem(f"{file} is over {BATCH_BYTES >> 20} MiB.", "Split it.")
        text = data.decode()
    except OSError as error:
        raise UsageProblem(f"{file} cannot be read: {error.strerror}.", "Name a file.") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{file} is no text.", "Write UTF-8.") from error
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and all(line.lstrip().startswith("{") for line in lines):
        return [_json(file, number, line) for number, line in enumerate(lines, 1)]
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageProblem(f"{file} is neither JSON lines nor YAML.", "One JSON object a line, or a YAML list.") from error
    return found if isinstance(found, list) else [] if found is None else [found]


def _json(file: str, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"Item {number} of {file} is not JSON.", "One JSON object a line.") from error


def start(
    items: list[pm.ProgramItem], client: ApiClient, *, dangerous_ok: str = "", dry_run: bool, as_json: bool, wait: bool = False
) -> tuple[int, str]:
    """Shows or starts them. (exit code, id of the only one or empty). ``wait``: stdout is kept for what the program answers."""
    hint(client)
    body = pm.ProgramsBody(items=items, dangerous_ok=dangerous_ok)
    if dry_run:
        return _shown(client.preview_programs(body), as_json, is_confirmed=bool(dangerous_ok.strip())), ""
    started = client.start_programs(body)
    return _told(started, as_json=as_json, wait=wait), started.items[0].id if len(items) == 1 else ""


def _shown(seen: pm.ProgramPreviews, as_json: bool, *, is_confirmed: bool) -> int:
    """Exit 0 when nothing would be refused, else the first refusal's code: a start whose words name a danger is refused until confirmed."""
    code = next((found for item in seen.items if (found := _refusal(item, is_confirmed))), int(ExitCode.DONE))
    if as_json:
        out.emit_view(seen)
        return code
    for number, item in enumerate(seen.items, 1):
        _show(f"{number}. ", item, is_confirmed)
    return code


def show_command(seen: pm.ProgramPreview, *, as_json: bool, is_confirmed: bool) -> int:
    """Show what a command could do at worst. Returns the code its start would end with."""
    if as_json:
        out.emit_view(seen)
    else:
        _show("", seen, is_confirmed)
    return _refusal(seen, is_confirmed)


def _show(number: str, item: pm.ProgramPreview, is_confirmed: bool) -> None:
    refused = plain(f"{item.why_not} {item.remedy}".rstrip(), 2000)
    out.say(f"{number}{item.agent}" + (f": would be refused: {refused}" if item.why_not else ", at worst:"))
    for line in item.reach:
        out.say(f"   {line.what:8}{plain(line.words, 1000)}" + (" (!)" if line.amber else ""))
    for words in item.dangers:
        said = "confirmed with --dangerous-ok" if is_confirmed else "refused until it is confirmed with --dangerous-ok REASON (!)"
        out.say(f"   danger  {plain(words, 500)}: {said}")


def _refusal(item: pm.ProgramPreview, is_confirmed: bool) -> int:
    """The code a start of it would end with; 0: it would start."""
    if item.why_not:
        return item.exit_code or int(ExitCode.FAILURE)
    return int(ExitCode.DENIED) if item.dangers and not is_confirmed else int(ExitCode.DONE)


def _told(started: pm.ProgramsStarted, *, as_json: bool, wait: bool) -> int:
    """Exit 0 when all run, else the code of the first that does not."""
    code = next((item.exit_code for item in started.items if item.error), int(ExitCode.DONE))
    if as_json:
        out.emit_view(started)
        return code
    for number, item in enumerate(started.items, 1):
        for line in item.reach:
            out.note(f"{line.what:8}{plain(line.words, 1000)}" + (" (!)" if line.amber else ""))
        for words in item.notes:
            out.note(f"note: {plain(words, 500)}")
        if item.error:
            out.note(f"item {number} was not started: {plain(item.error, 1000)} {plain(item.remedy, 500)}".rstrip())
        elif wait:
            out.note(f"agent {plain(item.id)} runs")
        else:
            out.say(plain(item.id))
    return code
