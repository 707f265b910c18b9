"""Texts rewritten into simple commands: each command that the real shell runs is among them."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path

import pytest

from console.policy.shell.lexer import Refused
from console.policy.shell.lines import simple_commands
from console.policy.shell.plain import Plain, plainer


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("cat > a <<'EOF'\nit's $HOME\nEOF\nls", "cat >a ; ls"),
        ("cat <<EOF > a && ls\nx\nEOF", "cat >a && ls"),
        ("A=1 B='x y' make all", "make all"),
        ("env A=1 make", "make"),
        ("export A=1 && make; ls", "make ; ls"),
        ("set -euo pipefail\nmake", "make"),
        ("for f in a b; do wc -l \"$f\"; done | sort", 'wc -l "a" ; wc -l "b" | sort'),
        ("for f in *.py; do cat \"$f\"; done", 'cat ""*.py""'),
        ("for i in {1..3}; do make; done", "make ; make ; make"),
        ("for i in $(seq 2); do make ${i}x; done", "make 1x ; make 2x"),
        ("if [ -f x ]; then a; elif b; then c; else d; fi", "test -f x ; a ; b ; c ; d"),
        ("[[ -n x ]] || exit 1", "test -n x"),
        ("(cd sub && make)", "cd sub && make"),
        ("make; echo \"exit: $?\"", 'make ; echo "exit: x"'),
        ("# what\nmake # all\n! ls", "make ; ls"),
        (". .venv/bin/activate && make", "make"),
        ("export A=1", "true"),
        ("cat <<< 'a b' | sort", "cat | sort"),
        ('echo "$HOME ${PATH}" $PWD/x', 'echo "x x" x/x'),
        ("type make", "true"),
    ],
)  # fmt: skip
def test_a_text_is_rewritten_into_its_commands(text: str, plain: str) -> None:
    found = plainer(text)
    assert found is not None and found.text == plain and not found.is_literal


def test_a_variable_that_names_a_file_stays_one() -> None:
    found = plainer('echo "$HOME" > $HOME/x')
    assert found is not None and "> $HOME/x" in found.text.replace(">$", "> $")


@pytest.mark.parametrize(
    "text",
    [
        *("cat <<EOF\n$(id)\nEOF", "cat <<EOF\n`id`\nEOF", "cat <<'EOF'\nx", "A=$(id) make", "for f in $(ls); do cat $f; done"),
        *("for f in $x; do cat $f; done", "for f in a; do awk '$f'; done", "f() { ls; }", "case a in a) ls;; esac", "((x=1))", "echo )"),
        *("echo a &&", "(cd a); ls", "if a; then cd b; fi; ls", ". ./x.sh", "cd a && . .venv/bin/activate", "export A"),
        *("ls {fd}> a", "a | exit", "diff <(a) <(b)", "echo `id`", "for f in {1..99}; do a; done", "set -- a", "[[ a == b* && c ]]", "ls"),
        *("BASH_ENV=x ls", "IFS=b; ls", "set -k; ls", ": || cd a && b", "(ls)#x", "cat <<'E'\n\tE\n", "ls a\\\nb; :"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_rewritten(text: str) -> None:
    assert plainer(text) is None


def test_variables_by_which_other_programs_do_something_else_are_told() -> None:
    for text in ("PATH=. ls", "LD_PRELOAD=x ls", "export GIT_DIR=x; ls", "TAPE=x tar", "HTTPS_PROXY=x ls", "TZ=:/x ls"):
        assert (found := plainer(text)) is not None and found.changes, text
    for text in ("CI=1 ls", "GIT_PAGER=cat ls", "FOO=1 ls", "export NODE_ENV=test; ls"):
        assert (found := plainer(text)) is not None and not found.changes, text
    assert plainer(". v/bin/activate") == Plain("true", sourced=("v/bin/activate",))


def test_a_literal_text_means_exactly_the_same() -> None:
    assert plainer("git commit -m \"$(cat <<'EOF'\nit's\nEOF\n)\" && ls") == Plain("git commit -m 'it'\"'\"'s' && ls", is_literal=True)
    assert plainer("bash -c 'x \"$(cat <<'EOF'\n$(id)\nEOF\n)\"'") is None


COMMANDS = ("one a", "two 'b c' \"d\"", "three > out.txt", "two $v", 'one "x-$v" ${v}', "three <<'E'\nhere $v\nE", "A=1 two x", "one | two")
FORMS = (
    "{0}\n{1}",
    "if {0}\nthen {1}\nelse {0}\nfi",
    "for v in k l; do {0}\ndone",
    "( {0}\n)\n{1}",
    "{{ {0}\n}} > log.txt",
    "export B=2; {0}",
    "while {0}\ndo {1}\nbreak; done",
    "[ -n a ] && {0}\n{1}",
    "set -e; {0}\n# {1} '",
)


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_shell_runs_is_among_the_commands(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    text = chance.choice(COMMANDS)
    for _ in range(chance.randrange(1, 4)):
        text = chance.choice(FORMS).format(*(chance.sample([text, chance.choice(COMMANDS)], 2)))
    log = tmp_path / "log"
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(f'#!/bin/sh\nline=$(printf "%s\\037" {name} "$@")\nprintf "%s\\n" "$line" >> {log}\n')
        (tmp_path / name).chmod(0o755)
    found = plainer(text)
    try:
        commands = simple_commands(found.text if found is not None else text)
    except Refused:
        return  # it is asked
    subprocess.run(["/bin/bash", "-c", text], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdin=subprocess.DEVNULL, timeout=20)
    ran = [tuple(line.split("\037")[:-1]) for line in log.read_text().splitlines()] if log.exists() else []
    assert set(ran) <= {simple.argv for simple in commands}, (text, found)


def test_a_text_of_many_groups_takes_no_long_time() -> None:
    for text in ("(" * 4000, "{ " * 2000, "if " * 2000, "for a in b; do " * 1000, "cat <<E\n" * 800, "'" * 4001):
        assert plainer(text) is None
    nested = "".join(itertools.chain("for v in a b c; do " * 9, ["x $v"], "; done" * 9))
    assert plainer(nested) is None
