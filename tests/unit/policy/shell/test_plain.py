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
        ('echo "$HOME ${PATH}" $PWD/x', 'echo "x x" ./x'),
        ("A=$(id) make", "id && make"),
        ("v=$(make 2>&1); echo \"$v $?\"", 'make 2>&1 ; echo "x x"'),
        ("F=src/a.c; wc -l \"$F\" ${F}", 'wc -l "src/a.c" src/a.c'),
        ("make --prefix=$PWD/x --d=$(pwd)", "pwd && make --prefix=./x --d=."),
        ("git diff $(git merge-base main HEAD)..x", "git merge-base main HEAD && git diff x..x"),
        ("echo \"at $(date +%F) $(cat a)\"", 'date +%F && cat a && echo "at x x"'),
        ("case \"$1\" in a|b*) ls;; (c) case x in x) make;; esac;; *) esac", 'echo "x" ; ls ; echo x ; make ; true ; true ; true'),
        ("case $(uname -s) in Linux) make;; esac", "uname -s && echo x ; make ; true"),
        ("echo $((2 * 3))", "echo x"),
        ("n=0; n=$((n+1)); echo \"$n\"; [ $n -lt 3 ]", 'echo "x" ; test x -lt 3'),
        ("for i in 1 2; do echo $((i*2)); done", "echo x ; echo x"),
        ("diff <(sort a) b", "sort a && diff /dev/null b"),
        ("cd sub && gcc $(find . -name '*.c')", r"cd sub && find . -name '*.c' && find . -name '*.c' -exec gcc {} \;"),
        ("git ls-files | grep x | xargs -n1 wc -l", r"git ls-files | grep x ; find . -not -path '*/.git/*' -exec wc -l {} \;"),
        ("rg -l foo src | xargs -I% cp % d", r"rg -l foo src ; find src -not -path '*/.*' -exec cp {} d \;"),
        ("find a -print0 | xargs -0 rm 2>/dev/null", r"find a -print0 ; find a -exec rm {} \; 2>/dev/null"),
        ("find a | while read -r f; do echo \"is $f\"; wc \"$f\"; done", r'find a ; echo "is x" ; find a -exec wc {} \;'),
        ("for f in $(ls *.c); do gcc -c $f; done", r"ls *.c ; find . -exec gcc -c {} \;"),
        ("files=(a.c 'b.c'); wc -l \"${files[@]}\"", "wc -l a.c b.c"),
        ("dirs=(src\n  tests\n)\nfor d in \"${dirs[@]}\"; do wc -l \"$d\"; done", 'wc -l "src" ; wc -l "tests"'),
        ("a=(b); printf '<%s>' \"${a[@]}\"", "printf '<%s>' b"),
        ("x=(-n 2) && y=(a b) && head \"${x[@]}\" \"${y[@]}\" | sort", "head -n 2 a b | sort"),
        ("cat $(<a)", None),
        ("mkdir -p a/{b,c}/d && ls", "mkdir -p a/b/d a/c/d && ls"),
        ("while IFS=, read -r a b; do echo \"$b\"; done < x.csv", 'echo "x" <x.csv'),
        ("while read -r f; do rm \"$f\"; done < x", None),
        ("make | tail; echo ${PIPESTATUS[0]}", "make | tail ; echo x"),
        ("history 5 | tail", "true | tail"),
        ("ulimit -n; make & echo $!", "true ; make & echo x"),
        ("cat a | xargs -I{} echo is {}", r"cat a ; find . -exec echo is {} \;"),
        ("cat a | xargs echo > b", "cat a | xargs echo >b"),
        ("column -s $'\\t' a", "column -s '\t' a"),
        ("ls -t build | head -1 | xargs -I{} stat build/{}", r"ls -t build | head -1 ; find build -exec stat {} \;"),
        ("find a -name '*.php' | xargs -n1 php -l", r"find a -name '*.php' ; find a -name '*.php' -exec php -l {} \;"),
        ("if a; then cd b; fi && ls", "a ; cd b ; ls"),
        ("uvicorn a & P=$!; sleep 2; kill $P", "uvicorn a ; sleep 2 ; true"),
        ("make & wait $!; kill -9 %1 2>/dev/null || ls", "make ; true || ls"),
        ("cat <<EOF > a\n\\`x\\` costs \\$1\nEOF", "cat >a"),
        ("pushd sub && make && popd", "cd sub && make && cd -"),
        ("type make", "true"),
    ],
)  # fmt: skip
def test_a_text_is_rewritten_into_its_commands(text: str, plain: str | None) -> None:
    found = plainer(text)
    assert (found.text if found is not None else None) == plain and not (found is not None and found.is_literal)


def test_a_subshell_that_works_elsewhere_is_a_text_of_its_own() -> None:
    found = plainer("(cd a && make) && (cd b; make) > out; ls")
    assert found is not None and (found.text, found.groups) == ("true && true >out ; ls", ("cd a && make", "cd b ; make"))
    assert plainer("cd x && (cd a && make) && ls") is None, "where the subshell begins is not where the text begins"
    looped = plainer("for d in a b; do (cd $d && make); done")
    assert looped is not None and looped.groups == ("cd a && make", "cd b && make")


def test_a_variable_that_names_a_file_stays_one() -> None:
    found = plainer('echo "$HOME" > $HOME/x')
    assert found is not None and "> $HOME/x" in found.text.replace(">$", "> $")


@pytest.mark.parametrize(
    "text",
    [
        *("cat <<EOF\n$(id)\nEOF", "cat <<EOF\n`id`\nEOF", "cat <<'EOF'\nx", "for f in $(cat a); do cat $f; done"),
        *("for f in $x; do cat $f; done", "for f in a; do awk '$f'; done", "f() { ls; }", "((x=1))", "echo )"),
        *("case a in a) ls;& b) rm c;; esac", "case a in $(ls)) ls;; esac", "case a in @(a|b)) ls;; esac"),
        *("echo $((n))", "n='a[$(ls)]'; echo $((n))", "n=1; read n; echo $((n))", "n=1; echo $((a[$(ls)]))", "n=1; n+=x; echo $((n))"),
        *("for n in a; do echo $((n)); done", "n=1; : ${n:=a}; echo $((n))", "n=1; echo $(( `ls` ))", "case a in a) ls;;& *) rm c;; esac"),
        *("echo a &&", "cd a && . .venv/bin/activate", "export A"),
        *("ls {fd}> a", "a | exit", "echo `id`", "for f in {1..99}; do a; done", "set -- a", "ls"),
        *("BASH_ENV=x ls", "IFS=b; ls", "set -k; ls", ": || cd a && b", "(ls)#x", "cat <<'E'\n\tE\n", "ls a\\\nb; :"),
        *("rm $'\\x2f'", "find .. | xargs -I{} cat a/{}", "find a | xargs php -r"),
        *("bash <(a)", "cat $(cat a)", "rm $(echo a)", "cd $(git rev-parse --show-toplevel)", "while a; do cd b; done; ls"),
        *("a | { cd b; ls; }", "! cd b && ls", "find a -printf /x | xargs rm", "find a | xargs -I% sh -c 'rm %'", "ls -a | xargs rm"),
        *("rg foo | xargs rm", "grep -ol x a | xargs rm"),
        *("find a | sed s/a/b/ | xargs rm", "find a | grep x b | xargs rm", "git ls-files .. | xargs rm", "cat <<EOF\n$(rm x)\nEOF"),
        *("find a | while read f; do cp $f $f.bak; done", "find a | while read -r f; do f=/x; rm $f; done"),
        *("fd x --path-separator / | xargs rm",),
        *("a=(b); a=(c); cat \"${a[@]}\"", "a=(b); cat ${a[@]}", "a=(b); cat \"x${a[@]}\"", "a=(b); cat \"$a\"", "a=(*); cat \"${a[@]}\""),
        *("a=(b) ; a+=(c); cat \"${a[@]}\"", "ls; a=(b); cat \"${a[@]}\"", "a=(b) cat \"${a[@]}\"", "a=($x); cat \"${a[@]}\""),
        *("PATH=(b); cat \"${PATH[@]}\"", "aliases=(b c); cat \"${aliases[@]}\"", "a=([0]=b); cat \"${a[@]}\"", "a=(b); \"${a[@]}\""),
        *("a=(b); X=1 \"${a[@]}\"", "a=(b); cat \"x \"${a[@]}\" y\"", "a=(b); echo '\"${a[@]}\"'", "a=(b); read -r a; cat \"${a[@]}\""),
        *("a=(b); . ./x; cat \"${a[@]}\"", "a=(b c); x=read; A=1 $x \"$y\"; cat \"${a[@]}\"", "a=(b); printf -v \"$x\" c; cat \"${a[@]}\""),
        *("a=(b); cat < \"${a[@]}\"", "a=(b 'c d'); cat \"${a[@]}\"", "a=(b) && (a=(c); cat \"${a[@]}\")", "a=()"),
        *("a=(b) & cat \"${a[@]}\"", "a=(b) || cat \"${a[@]}\""),
        *("echo $(cd a; ls)", "echo $(echo ')' # )\n)", "echo `a`", "find a -exec b {} + | xargs rm"),
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_rewritten(text: str) -> None:
    assert plainer(text) is None


def test_variables_by_which_other_programs_do_something_else_are_told() -> None:
    for text in ("PATH=. ls", "LD_PRELOAD=x ls", "export GIT_DIR=x; ls", "TAPE=x tar", "HTTPS_PROXY=x ls", "TZ=:/x ls"):
        assert (found := plainer(text)) is not None and not found.fits(frozenset({"ls", "tar"})), text
    for text in ("PATH=. make; ls", "PYTHONPATH=. python a > x; ls"):
        assert (found := plainer(text)) is not None and found.fits(frozenset({"ls", "echo"})), text
    for text in ("PYTHONPATH=. ls; ls", "PATH=. uv run ls", "PATH=.; ls", "export PATH=.; python a; ls"):
        assert (found := plainer(text)) is not None and not found.fits(frozenset({"ls"})), text
    for text in ("CI=1 ls", "GIT_PAGER=cat ls", "FOO=1 ls", "export NODE_ENV=test; ls"):
        assert (found := plainer(text)) is not None and found.fits(frozenset({"ls"})), text
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
    "( cd . && {0}\n) && {1}",
    "if true; then cd .; {0}\nfi; {1}",
    "w=$({0}\n); {1}",
    'echo "$({0}\n)" && {1}',
    "cat <({0}\n) && {1}",
    "one & {0}\nP=$!; {1}\nkill $P",
)


def commands_of(text: str) -> set[tuple[str, ...]]:
    """What a text, and each subshell of it, is judged as. Raises Refused for one that is asked."""
    found = plainer(text)
    commands = {simple.argv for simple in simple_commands(found.text if found is not None else text)}
    return commands.union(*(commands_of(group) for group in found.groups if found is not None)) if found is not None else commands


@pytest.mark.parametrize("seed", range(80))
def test_whatever_the_shell_runs_is_among_the_commands(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    text = chance.choice(COMMANDS)
    for _ in range(chance.randrange(1, 4)):
        text = chance.choice(FORMS).format(*(chance.sample([text, chance.choice(COMMANDS)], 2)))
    log = tmp_path / "log"
    for name in ("one", "two", "three"):
        (tmp_path / name).write_text(f'#!/bin/sh\nline=$(printf "%s\\037" {name} "$@")\nprintf "%s\\n" "$line" >> {log}\n')
        (tmp_path / name).chmod(0o755)
    try:
        commands = commands_of(text)
    except Refused:
        return  # it is asked
    subprocess.run(["/bin/bash", "-c", text], cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, stdin=subprocess.DEVNULL, timeout=20)
    ran = [tuple(line.split("\037")[:-1]) for line in log.read_text().splitlines()] if log.exists() else []
    assert set(ran) <= commands, text


def test_a_text_of_many_groups_takes_no_long_time() -> None:
    for text in ("(" * 4000, "{ " * 2000, "if " * 2000, "for a in b; do " * 1000, "cat <<E\n" * 800, "'" * 4001):
        assert plainer(text) is None
    nested = "".join(itertools.chain("for v in a b c; do " * 9, ["x $v"], "; done" * 9))
    assert plainer(nested) is None
