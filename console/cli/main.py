"""The command line's door: finds the verb, and is the only place in it where errors become words and exit codes.

A verb's module is imported when the verb is asked for, and what prints when there is something to print: ``--version`` waits for neither.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import console
from console.cli.verbs import GROUPS, NOT_YET, OPTIONS, PAGED, VERBS, WORDS
from console.domain.process.ending import INTERRUPTED, leave

if TYPE_CHECKING:
    from console.cli.syntax import Verb, Verbs
    from console.domain.errors import ConsoleError, UsageProblem

_OWN = (["--version"], ["--help"], ["-h"], ["completion", "bash"], ["completion", "zsh"], ["completion", "fish"])
NO_PAGER = "--no-pager"
PROGRAM = "watchfloor"
TRACEBACK_VARIABLE = "WATCHFLOOR_TRACEBACK"


def main(argv: list[str]) -> int:
    """Runs one verb and returns its documented exit code; never raises, never prints a traceback."""
    if argv in _OWN:
        return _own(" ".join(argv))
    from console.cli.terminal import out
    from console.domain.errors import ConsoleError

    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as the program's entry left it; never what the one who started us ignores
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return _run(out.readable(argv))
    except ConsoleError as error:
        return _refuse(error, argv)
    except KeyboardInterrupt:
        out.note("interrupted")
        return INTERRUPTED
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _refuse(ConsoleError(f"{error.strerror or error}{where}.", "Check it and try again."), argv)
    except Exception as error:  # noqa: BLE001 - the door: a mistake of ours must not show as a traceback or pass as success
        return _refuse(_our_mistake(error), argv)


def _own(word: str) -> int:
    """What needs no verb's module: ``--version``, ``--help`` of the program, and ``completion SHELL``, whose files are made beforehand."""
    if word == "--version":
        text = f"{PROGRAM} {console.__version__}\n"
    elif word.startswith("completion"):
        with open(f"{__file__.rpartition('/')[0]}/completions/{PROGRAM}.{word.split()[1]}", encoding="utf-8") as file:
            text = file.read()
    else:
        text = _help()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, AttributeError):  # a reader that went away, a descriptor that is closed: no error of ours
        from console.cli.terminal import out

        out.write("")
    return 0


def _help() -> str:
    from console.cli import helping

    parts = [helping.usage(PROGRAM, "[OPTIONS] COMMAND [ARGS]..."), helping.paragraphs(WORDS), helping.section("Options", OPTIONS)]
    widest = max(map(len, VERBS))
    groups = [helping.section(title, [(name, line) for name, (_, line) in verbs.items()], widest) for title, verbs in GROUPS.items()]
    return "\n".join([*parts, *groups, f"{PROGRAM} VERB --help shows what a verb takes, with an example.\n"])


def _run(words: list[str]) -> int:
    """What is said before the verb, then the verb."""
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("--version", "--help", "-h"):
            return _own(word)
        if word == NO_PAGER:
            os.environ["WATCHFLOOR_PAGER"] = "cat"
            continue
        name, sign, value = word.partition("=")
        if name != "--state-dir":
            from console.cli.syntax import did_you_mean

            near = (
                " Did you mean --version?" if name.lower() == "-v" else did_you_mean(name, ["--state-dir", NO_PAGER, "--version", "--help"])
            )
            raise _usage(f"{PROGRAM} has no option {_shown(name)}.{near}")
        if not sign and not words:
            raise _usage("--state-dir needs a value.")
        os.environ["WATCHFLOOR_STATE_DIR"] = value if sign else words.pop(0)
    if words:
        return _verb(words[0], words[1:])
    from console.cli.windows import open_console

    return open_console(None)


def _verb(name: str, words: list[str]) -> int:
    if name in NOT_YET:
        from console.domain.errors import Unavailable

        raise Unavailable(f"{name} is not available in this version, because {NOT_YET[name]}.", "watchfloor --help lists what is.")
    if name not in VERBS:
        from console.cli.syntax import did_you_mean
        from console.wording.typed_verbs import MEANT

        near = f" Did you mean {MEANT[name]}?" if name in MEANT else did_you_mean(name, VERBS)
        raise _usage(f"There is no verb {_shown(name)}.{near}")
    from console.cli.find import find

    return _found(f"{PROGRAM} {name}", find(name), words)


def _found(path: str, found: Verb | Verbs, words: list[str]) -> int:
    from console.cli.syntax import Verbs

    return _of_family(path, found, words) if isinstance(found, Verbs) else _call(path, found, words)


def _call(path: str, verb: Verb, words: list[str]) -> int:
    from console.cli.terminal import out

    is_paged = path.removeprefix(f"{PROGRAM} ") in PAGED
    if is_paged and NO_PAGER in words:
        words, is_paged = [word for word in words if word != NO_PAGER], False
    given = verb.read(path, words)
    if given is None:
        from console.cli.helping import verb_help

        out.write(verb_help(path, verb))
        return 0
    reads = path.removeprefix(f"{PROGRAM} ") in PAGED
    if not is_paged or given.get("as_json") or given.get("follow") or not out.is_terminal():
        return _answer(verb, given, reads=reads)
    from console.cli.terminal.pager import through_pager

    return through_pager(lambda: _answer(verb, given, reads=reads))


def _answer(verb: Verb, given: dict[str, Any], *, reads: bool) -> int:
    """The exit code. What was typed in the place of an id is looked up only where it is needed: that is one more question."""
    from console.domain.errors import NotFound, UsageProblem

    if any(isinstance(value, list) and len(value) > 1 for value in given.values()):
        return _of_several(verb, given)
    try:
        return verb.function(**given)
    except (NotFound, UsageProblem) as error:
        from console.cli.short_ids import is_no_id, whole_ids

        # Nothing was done: what was named is not there. It may be the beginning of an id, or a name.
        if not isinstance(error, NotFound) and not is_no_id(verb, given):
            raise
        whole = whole_ids(verb, given, reads=reads)
        if not whole:
            raise
    return verb.function(**whole)


def _of_several(verb: Verb, given: dict[str, Any]) -> int:
    """An order for several: what can be done is done, and what is left out is said and is no success."""
    from console.cli.short_ids import known_of_several
    from console.cli.terminal import out
    from console.domain.errors import NotFound

    given, left_out = known_of_several(verb, given)
    try:
        code = verb.function(**given)
    except NotFound:
        from console.cli.short_ids import whole_ids

        if not (whole := whole_ids(verb, given, reads=False)):
            raise
        code = verb.function(**whole)
    for error in left_out:
        out.complain(error)
    return code or max((int(error.exit_code) for error in left_out), default=0)


def _of_family(path: str, family: Verbs, words: list[str]) -> int:
    from console.cli.syntax import HELP_NAMES, did_you_mean
    from console.cli.terminal import out

    if words and words[0] in family.verbs:
        return _found(f"{path} {words[0]}", family.verbs[words[0]], words[1:])
    if words and words[0] in HELP_NAMES:
        from console.cli.helping import family_help

        out.write(family_help(path, family))
        return 0
    if words:
        from console.wording.typed_verbs import MEANT

        what = "option" if words[0].startswith("-") else "verb"
        family_name = path.removeprefix(f"{PROGRAM} ")
        meant = MEANT.get(f"{family_name} {words[0]}")
        if not meant and what == "verb" and "show" in family.verbs and any(letter.isdigit() for letter in words[0]):
            meant = f"{family_name} show"  # an id, where the verb was forgotten
        near = f" Did you mean {meant}?" if meant else did_you_mean(words[0], [*family.verbs, *HELP_NAMES])
        raise _usage(f"{path} has no {what} {_shown(words[0])}.{near}", path)
    from console.cli.helping import family_help

    out.note(family_help(path, family))
    raise _usage(f"Missing subcommand: {path} needs one of its verbs.", path)


def _shown(word: str) -> str:
    from console.cli.terminal.plain import plain

    return plain(word, 80)


def _usage(words: str, path: str = PROGRAM) -> UsageProblem:
    from console.domain.errors import UsageProblem

    return UsageProblem(words, f"{path} --help lists the verbs.")


def _our_mistake(error: Exception) -> ConsoleError:
    from console.cli.terminal import out
    from console.domain.errors import ConsoleError

    if os.environ.get(TRACEBACK_VARIABLE):
        import traceback

        out.note("".join(traceback.format_exception(error)))
    return ConsoleError(
        f"This is a mistake in watchfloor: {type(error).__name__}: {error}",
        f"Run it again with {TRACEBACK_VARIABLE}=1 and report what it prints.",
    )


def _refuse(error: ConsoleError, argv: list[str]) -> int:
    from console.cli.terminal import out

    out.complain(error)
    own = argv[: argv.index("--")] if "--" in argv else argv
    if "--json" in own:
        out.emit({"error": error.what, "remedy": error.remedy, "exit_code": int(error.exit_code)})
    return int(error.exit_code)


def run() -> NoReturn:
    """Runs the verb named in sys.argv and ends the process."""
    leave(main(sys.argv[1:]))
