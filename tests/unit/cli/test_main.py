"""The door: every outcome is words and a documented exit code, never a traceback."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import console.__main__
from console.cli import completion
from console.cli import main as door
from console.cli.find import every_verb
from console.cli.syntax import Verb
from console.cli.terminal import out
from console.cli.verbs import GROUPS, NOT_YET, VERBS
from console.domain.errors import ConsoleError, ExitCode, UsageProblem
from console.wording.typed_verbs import MEANT
from tests.fakes.canned_api import CannedApi
from tests.fakes.verbs import Watchfloor


def test_the_version_is_printed(watchfloor: Watchfloor) -> None:
    assert watchfloor("--version").out == f"watchfloor {console.__version__}\n"


def test_help_lists_every_verb_and_none_of_a_later_version(watchfloor: Watchfloor) -> None:
    said = watchfloor("--help")
    listed = {line.split()[0] for title in GROUPS for line in said.out.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines()}
    assert said.code == 0
    assert listed == set(VERBS)
    assert not listed & set(NOT_YET)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_explains_itself(watchfloor: Watchfloor, verb: str) -> None:
    said = watchfloor(verb, "--help")
    assert said.code == 0 and "Usage: watchfloor " + verb in said.out
    assert "\nOptions:\n" in said.out and watchfloor(verb, "-h").out == said.out


def test_the_example_of_every_verb_is_one_that_the_verb_takes() -> None:
    verbs = dict(every_verb())
    for at, found in verbs.items():
        example = f"{' '.join(at)} {found.example}"
        words = shlex.split(example)
        path = next(tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in verbs)
        verb = verbs[path]
        assert isinstance(verb, Verb), f"the example of a family names one of its verbs: {example}"
        said = verb.read("watchfloor", words[len(path) :])
        assert said is not None, example


def test_each_verb_that_is_suggested_for_a_word_of_another_program_is_one() -> None:
    verbs = {" ".join(path) for path, _ in every_verb()} | {"--help", "--version"}
    assert {one.partition(" --")[0] for one in MEANT.values()} <= verbs and not set(MEANT) & set(VERBS)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("flet",), "Did you mean fleet?"),
        (("aproval",), "Did you mean approval?"),
        (("panik", "--reason", "r"), "Did you mean panic"),
        (("--stat-dir", "x"), "Did you mean --state-dir?"),
        (("stop", "a"), "Did you mean kill?"),
        (("ps",), "Did you mean fleet?"),
        (("resume",), "Did you mean thaw?"),
        (("spend",), "Did you mean cost?"),
        (("restart", "a"), "Did you mean run --again?"),
        (("outputs",), "--help lists the verbs"),
        (("network-data",), "--help lists the verbs"),
        (("budget", "ste"), "Did you mean set"),
        (("kill", "a", "--tre"), "Did you mean --tree?"),
        (("kill", "a", "--resaon", "r"), "Did you mean --reason?"),
        (("activity", "a", "-n", "many"), "--rows takes a whole number, not 'many'."),
        (("activity", "a", "-n", "0"), "--rows takes 1 to 500, not 0."),
        (("kill", "a", "--reason"), "--reason needs a value."),
        (("kill", "a", "--tree=yes"), "--tree takes no value."),
        (("agent", "show", "a", "b"), "takes no further word: 'b'."),
        (("-v",), "Did you mean --version?"),
        (("agent", "a-12ab34cd"), "Did you mean agent show?"),
        (("receipt", "20260101-000000-abcdef01"), "Did you mean receipt show?"),
        (("kill", "a-12", "--session", "s"), "Name only one of: AGENT..., --session ID, --host, --all."),
        (("kill",), "Name one of: AGENT..., --session ID, --host, --all."),
        (("panic", "--dry-run"), "Did you mean kill --all --dry-run?"),
        (("run", "--agent", "claude", "--", "x"), "Did you mean claude-code?"),
        (("run", "--sandbox", "bwrap", "--", "x"), "--sandbox takes none, bubblewrap, docker or gvisor, not 'bwrap'."),
        (("run", "--network", "off", "--", "x"), "--network takes FULL, PROXIED or NONE, not 'OFF'."),
        (("run", "--limit", "wall=5m", "--", "x"), "Limit wall needs a number of seconds, not '5m'.\n  For example wall=600"),
        (("budget", "set", "cost=5$", "--day", "--reason", "r"), "Limit cost needs a number of dollars, not '5$'."),
    ],
)
def test_a_mistyped_word_is_answered_with_what_was_meant(watchfloor: Watchfloor, argv: tuple[str, ...], words: str) -> None:
    said = watchfloor(*argv)
    assert said.code == ExitCode.USAGE and words in said.err, said.err


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_the_completion_of_a_shell_is_that_of_todays_verbs(watchfloor: Watchfloor, shell: str) -> None:
    assert watchfloor("completion", shell).out == completion.made()[shell], "python -m console.cli.completion makes the files again"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("ki", {"kill"}), ("kill --tr", {"--tree"}), ("budget s", {"set"}), ("budget set --re", {"--reason"}), ("nosuch x", set())],
)
def test_bash_completes_verbs_and_options(words: str, wanted: set[str]) -> None:
    script = (
        f"source {completion.FILES}/watchfloor.bash; COMP_WORDS=(watchfloor {words}); COMP_CWORD=$(({len(words.split())}));"
        ' _watchfloor; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert (set(done.stdout.split()), done.stderr) == (wanted, "")


def test_options_may_stand_together_and_beside_what_they_name() -> None:
    verb = dict(every_verb())[("activity",)]
    assert isinstance(verb, Verb)
    for words in (["-fn3", "a"], ["-f", "-n", "3", "a"], ["a", "--follow", "--rows=3"], ["--rows", "3", "-f", "--", "a"]):
        assert verb.read("watchfloor", words) == verb.read("watchfloor", ["a", "-f", "-n", "3"]), words


def test_what_is_missing_leads_to_the_help_of_that_very_verb(watchfloor: Watchfloor) -> None:
    said = watchfloor("budget", "set", "cost=5", "--day")
    assert said.code == ExitCode.USAGE and "--reason" in said.err and "watchfloor budget set --help shows what it takes." in said.err
    assert "watchfloor --help lists the verbs." in watchfloor("nosuch").err


@pytest.mark.parametrize("family", ["network", "session", "secrets", "receipt"])
def test_a_family_without_its_verb_shows_what_there_is_as_lines(watchfloor: Watchfloor, family: str) -> None:
    said = watchfloor(family)
    assert said.code == ExitCode.USAGE and said.out == "" and "\\n" not in said.err
    assert f"Usage: watchfloor {family} [OPTIONS] COMMAND" in said.err and "\nCommands:\n" in said.err
    assert said.err.splitlines()[-2] == f"error: Missing subcommand: watchfloor {family} needs one of its verbs."


@pytest.mark.parametrize("verb", sorted(NOT_YET))
def test_a_verb_of_a_later_version_says_why_it_is_not_there(watchfloor: Watchfloor, verb: str) -> None:
    said = watchfloor(verb, "--what", "ever", "else")
    assert said.code == 1
    assert f"{verb} is not available in this version, because" in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    "argv", [("nosuch",), ("fleet", "--nosuch"), ("kill",), ("rearm",), ("allowlist", "add"), ("panic", "x"), ("fleet", "x")]
)
def test_wrong_usage_is_2_with_words(watchfloor: Watchfloor, argv: tuple[str, ...]) -> None:
    said = watchfloor(*argv)
    assert said.code == 2 and said.err.startswith("error: ") and "--help" in said.err
    assert "Traceback" not in said.err


def test_an_argument_that_is_not_text_is_refused_and_shown_harmless(watchfloor: Watchfloor) -> None:
    said = watchfloor("kill", "\x1b[31m\udcff")
    assert said.code == 2 and "Argument 2 (\\e[31m\\udcff) is not valid UTF-8" in said.err


@pytest.mark.parametrize("words", [["--reason", "caf\udce9"], ["--reason=caf\udce9"]])
def test_a_reason_that_is_not_text_keeps_no_kill_from_going_out(words: list[str]) -> None:
    assert out.readable(["panic", *words])[-1].endswith("caf\\udce9")
    with pytest.raises(UsageProblem):
        out.readable(["\udce9", "--reason"])


def test_hostile_arguments_are_shown_harmless(watchfloor: Watchfloor) -> None:
    for argv in (("\x1b[2J",), ("fleet", "\u202e"), ("kill", "\x07" * 500)):
        said = watchfloor(*argv)
        assert said.code in (2, 3, 6) and "\x1b" not in said.err and "\u202e" not in said.err and "\x07" not in said.err


def test_without_an_instance_every_verb_says_so_in_the_same_words_and_makes_nothing(watchfloor: Watchfloor, state_dir: Path) -> None:
    for argv in (
        ("fleet",),
        ("status",),
        ("logs",),
        ("audit", "tail"),
        ("audit", "verify"),
        ("agent", "output", "a-1"),
        ("kill", "a"),
        ("freeze", "a"),
        ("rearm", "--reason", "r"),
        ("allowlist", "list"),
        ("session", "list"),
        ("rollback", "list"),
        ("receipt", "list"),
    ):
        said = watchfloor(*argv)
        assert said.code == 3, argv
        assert f"There is no instance in {state_dir}" in said.err and "watchfloor supervisor --state-dir" in said.err
        assert list(state_dir.iterdir()) == []  # looking makes nothing


@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (("allowlist", "add", "api.example.com", "--reason", "r", "--owner", "me"), True),
        (("budget", "set", "cost=5", "--day", "--reason", "r"), True),
        (("policy", "profile", "coding", "--type", "codex", "--reason", "r"), True),
        (("webhook", "set", "https://alerts.example.com/x"), True),
        (("allowlist", "list"), False),
        (("budget", "list"), False),
    ],
)
def test_what_sets_something_up_before_the_first_agent_starts_the_accounts_own_supervisor(
    words: tuple[str, ...], starts: bool, watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr("console.cli.embedded.start_own", asked.append)
    assert watchfloor(*words).code == 3, "none was started for this test"
    assert bool(asked) is starts


def test_with_json_an_error_is_json_too(watchfloor: Watchfloor) -> None:
    said = watchfloor("fleet", "--json")
    assert said.json == {
        "schema_version": 1,
        "error": said.json["error"],
        "remedy": said.json["remedy"],
        "exit_code": 3,
    }
    assert "There is no instance" in said.json["error"] and said.code == 3


def test_json_behind_two_dashes_is_the_agents_own(watchfloor: Watchfloor) -> None:
    assert watchfloor("run", "--limit", "x", "--", "a", "--json").out == ""


def test_the_folder_may_be_named_before_the_verb(watchfloor: Watchfloor, tmp_path: Path) -> None:
    said = watchfloor("--state-dir", str(tmp_path / "elsewhere"), "fleet")
    assert said.code == 3 and str(tmp_path / "elsewhere") in said.err


def test_a_folder_that_is_a_file_is_an_error_with_words(watchfloor: Watchfloor, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for argv in (("fleet",), ("status",), ("panic", "--reason", "r"), ("audit", "verify"), ("run", "--", "true")):
        said = watchfloor("--state-dir", str(tmp_path / "file"), *argv)
        assert said.code == 1 and "cannot be used" in said.err and "Traceback" not in said.err


def test_ctrl_c_is_130(watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: list[str]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(out, "readable", interrupt)
    assert watchfloor("fleet").code == 130


def test_a_mistake_of_ours_is_a_failure_without_a_traceback(watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: list[str]) -> None:
        raise RuntimeError("oops \x1b[31m")

    monkeypatch.setattr(out, "readable", broken)
    said = watchfloor("fleet")
    assert said.code == 1 and "RuntimeError: oops \\e[31m" in said.err and "Traceback" not in said.err
    monkeypatch.setenv(door.TRACEBACK_VARIABLE, "1")
    assert "Traceback" in watchfloor("fleet").err


def test_an_error_of_the_system_has_words(watchfloor: Watchfloor, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: list[str]) -> None:
        raise OSError(28, "No space left on device", "/x")

    monkeypatch.setattr(out, "readable", full)
    said = watchfloor("fleet")
    assert said.code == 1 and "No space left on device (/x)" in said.err


def test_the_module_ends_with_the_verbs_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["watchfloor", "nosuch"])
    with pytest.raises(SystemExit) as caught:
        console.__main__.main()
    assert caught.value.code == 2
    assert "nosuch" in capsys.readouterr().err


def test_the_supervisors_own_exit_code_is_kept(watchfloor: Watchfloor, api: CannedApi) -> None:
    api.refuse("GET /api/fleet", 503, "Killed.", "Rearm.", exit_code=4)
    said = watchfloor("fleet")
    assert (said.code, said.err) == (4, "error: Killed.\n  Rearm.\n")


def test_no_error_can_pass_as_done() -> None:
    assert ConsoleError("x").exit_code is ExitCode.FAILURE


def test_output_that_is_streamed_leaves_no_room_for_json(watchfloor: Watchfloor) -> None:
    said = watchfloor("run", "--wait", "--json", "--", "true")
    assert said.code == 2 and said.json["exit_code"] == 2 and "--wait" in said.json["error"]


def test_a_page_that_is_none_is_named_with_those_that_are(watchfloor: Watchfloor) -> None:
    from console.cli import windows
    from console.gui.pages.registry import PAGES

    said = watchfloor("screenshot", "nosuch", "x.png")
    assert said.code == 2 and said.err.startswith("error: There is no page 'nosuch'") and "receipt" in said.err
    assert set(windows.PAGES) == {kind.spec.name for kind in PAGES}
    listed = watchfloor("screenshot", "--help").out
    assert all(page in listed for page in windows.PAGES)


def test_ctrl_c_while_modules_load_ends_it_without_a_traceback() -> None:
    code = """
import os, signal, sys
class Slow:
    def find_spec(self, name, *rest):
        if name == "console.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Slow())
from console.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], cwd=Path(console.__file__).parent.parent, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")


@pytest.mark.parametrize("words", [["clear"], ["unset"], ["set", "cost=none", "--day", "--reason", "r"]])
def test_what_people_type_to_take_a_limit_away_names_the_verb_that_does(words: list[str], watchfloor: Watchfloor) -> None:
    said = watchfloor("budget", *words)
    assert said.code == 2 and "budget remove" in said.err
