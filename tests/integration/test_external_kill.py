"""The kill from outside, against stand-ins for gcloud, gh and curl in a PATH of the test's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "external-kill"
PROJECT = "my-project-1"
ACCOUNT = f"agents@{PROJECT}.iam.gserviceaccount.com"
TOKEN = "ghp_" + "a1B2" * 9
STUB = """#!/bin/bash
printf '%s' "${0##*/}" >> "$CALLS"; printf ' %s' "$@" >> "$CALLS"; printf '\\n' >> "$CALLS"
case "${0##*/} $*" in
  curl*) cat > "$CALLS.stdin" ;;
  *"service-accounts describe"*) echo "${DISABLED-True}" ;;
  *"services describe"*) echo "${INSTANCES-0}" ;;
  *"--method DELETE"*) ;;
  "gh api --silent /user") echo "gh: Bad credentials (HTTP ${TOKEN_ANSWER-401})" >&2; [ "${TOKEN_ANSWER-401}" = 200 ]; exit ;;
  "gh api"*) echo "gh: Not Found (HTTP ${KEY_ANSWER-404})" >&2; exit 1 ;;
esac
case "$*" in *"${FAILS-nothing fails}"*) exit 1 ;; esac
"""


class Desk:
    """A person's machine."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.token = folder / "token"
        self.token.write_text(TOKEN + "\n")
        self.token.chmod(0o600)
        self.tools = folder / "bin"
        self.tools.mkdir()
        for name in ("gcloud", "gh", "curl"):
            (self.tools / name).write_text(STUB)
            (self.tools / name).chmod(0o755)
        self.everything = [
            "--service-account", ACCOUNT, "--git-token-file", str(self.token), "--deploy-key", "owner/repo:17",
            "--run-service", "agents", "--region", "europe-west1",
        ]  # fmt: skip

    def run(self, *words: str, **answers: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": f"{self.tools}:/usr/bin:/bin", "CALLS": str(self.calls), **answers}
        return subprocess.run(["bash", str(SCRIPT), *words], env=env, capture_output=True, text=True, timeout=120, check=False)

    def asked(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_everything_named_is_stopped_and_then_asked_whether_it_is(desk: Desk) -> None:
    done = desk.run("--project", PROJECT, "--yes-stop", PROJECT, *desk.everything)
    assert done.returncode == 0, done
    asked = desk.asked()
    assert asked[0] == f"gcloud iam service-accounts disable {ACCOUNT} --project={PROJECT} --quiet", "what acts comes first"
    assert f"gcloud run services update agents --project={PROJECT} --region=europe-west1 --scaling=0 --quiet" in asked
    assert "gh api --silent --method DELETE /repos/owner/repo/keys/17" in asked
    assert done.stdout.count("done: ") == 4 and done.stdout.count("confirmed: ") == 4
    assert Path(f"{desk.calls}.stdin").read_text() == f'{{"credentials":["{TOKEN}"]}}'
    assert TOKEN not in "".join(asked) + done.stdout + done.stderr, "the token is on no command line and in no output"


def test_a_dry_run_says_what_it_would_do_and_asks_nobody_anything(desk: Desk) -> None:
    done = desk.run("--dry-run", "--project", PROJECT, *desk.everything)
    assert done.returncode == 0 and desk.asked() == []
    assert done.stdout.count("would: ") == 4 and f"service-accounts disable {ACCOUNT}" in done.stdout and TOKEN not in done.stdout


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"DISABLED": "False"}, "NOT CONFIRMED: service account"),
        ({"DISABLED": ""}, "NOT CONFIRMED: service account"),
        ({"INSTANCES": "3"}, "NOT CONFIRMED: service agents"),
        ({"TOKEN_ANSWER": "200"}, "NOT CONFIRMED: the git token"),
        ({"TOKEN_ANSWER": "502"}, "NOT CONFIRMED: the git token"),
        ({"KEY_ANSWER": "403"}, "NOT CONFIRMED: deploy key"),
        ({"FAILS": "service-accounts disable"}, "FAILED: service account"),
        ({"FAILS": "services update"}, "FAILED: service agents"),
    ],
)
def test_what_is_not_confirmed_is_said_and_stops_no_other_step(desk: Desk, answers: dict[str, str], words: str) -> None:
    done = desk.run("--project", PROJECT, "--yes-stop", PROJECT, *desk.everything, **answers)
    assert done.returncode == 1 and words in done.stderr
    steps = ("accounts disable", "services update", "DELETE", "curl")
    assert all(any(step in call for call in desk.asked()) for step in steps)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--service-account", ACCOUNT],
        ["--project", PROJECT],
        ["--project", PROJECT, "--service-account", ACCOUNT],
        ["--project", PROJECT, "--yes-stop", "another-project", "--service-account", ACCOUNT],
        ["--project", "*", "--yes-stop", "*", "--service-account", ACCOUNT],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--service-account", "all"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--service-account", "somebody@example.com"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--run-service", "agents"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--run-service", "--quiet", "--region", "europe-west1"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--deploy-key", "owner/repo/../..:1"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--git-token-file", "/etc/passwd"],
        ["--project", PROJECT, "--yes-stop", PROJECT, "--service-account"],
        ["--everything"],
    ],
)
def test_without_explicit_names_it_refuses_and_touches_nothing(desk: Desk, words: list[str]) -> None:
    done = desk.run(*words)
    assert done.returncode == 2 and done.stderr and desk.asked() == []


def test_a_token_that_others_can_read_or_that_is_none_is_refused(desk: Desk) -> None:
    words = ["--project", PROJECT, "--yes-stop", PROJECT, "--git-token-file", str(desk.token)]
    desk.token.chmod(0o644)
    assert desk.run(*words).returncode == 2
    desk.token.chmod(0o600)
    desk.token.write_text(f'{TOKEN}"],"x":["')
    assert desk.run(*words).returncode == 2 and desk.asked() == []
