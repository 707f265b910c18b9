"""``watchfloor completion``: the file that completes verbs and options in a shell. The files are made beforehand, and start no Python.

``python -m console.cli.completion`` makes them again from the table of verbs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from console.cli.syntax import Argument, example
from console.domain.errors import UsageProblem

SHELLS = ("bash", "zsh", "fish")
FILES = Path(__file__).resolve().with_name("completions")


@example("bash")
def completion(shell: Annotated[str, Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> int:
    """Print what completes verbs and options in a shell. Load it at the start of the shell, as the example does."""
    if shell not in SHELLS:
        raise UsageProblem(f"There is no completion for {shell[:40]!r}.", f"Shells: {', '.join(SHELLS)}.")
    from console.cli.terminal import out

    out.write((FILES / f"watchfloor.{shell}").read_text())
    return 0


def made() -> dict[str, str]:
    """Each file as the table of verbs makes it now, by the name of its shell."""
    from console.cli.find import every_verb
    from console.cli.syntax import Verb
    from console.cli.verbs import OPTIONS

    below: dict[str, list[str]] = {"": [word for names, _ in OPTIONS for word in names.replace(",", "").split() if word.startswith("-")]}
    for path, one in every_verb():
        *above, name = path
        below.setdefault(" ".join(above), []).append(name)
        options = [option for each in one.parameters() for option in each.names] if isinstance(one, Verb) else []
        below.setdefault(" ".join(path), []).extend(["-h", "--help", *options])
    cases = "".join(f'    "{path}") words="{" ".join(words)}" ;;\n' for path, words in below.items())
    function = _FUNCTION.replace("CASES", cases)
    fish = "".join(_fish(path, words) for path, words in below.items())
    return {"bash": _BASH.replace("FUNCTION", function), "zsh": _ZSH.replace("FUNCTION", function), "fish": _FISH + fish}


def _fish(path: str, words: list[str]) -> str:
    return f'complete -c watchfloor -f -n "__watchfloor_below \'{path}\'" -a "{" ".join(words)}"\n'


_FUNCTION = """\
_watchfloor_words() {  # the words that may follow those already typed
  local path="" word words="" one
  for one in "$@"; do
    case "$one" in
      -*) ;;
      *) word="${path:+$path }$one"; _watchfloor_has "$word" && path="$word" ;;
    esac
  done
  _watchfloor_has "$path"
  printf '%s' "$_watchfloor_found"
}
_watchfloor_has() {
  local words=""
  case "$1" in
CASES    *) return 1 ;;
  esac
  _watchfloor_found="$words"
}
"""
_BASH = """\
# watchfloor: verbs and options. Load it with: source <(watchfloor completion bash)
FUNCTION
_watchfloor() {
  local known
  known="$(_watchfloor_words "${COMP_WORDS[@]:1:COMP_CWORD-1}")"
  mapfile -t COMPREPLY < <(compgen -W "$known" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _watchfloor watchfloor
"""
_ZSH = """\
#compdef watchfloor
# watchfloor: verbs and options. Load it with: source <(watchfloor completion zsh)
FUNCTION
_watchfloor() {
  local known
  known="$(_watchfloor_words "${words[@]:1:$((CURRENT - 2))}")"
  compadd -- ${=known}
  _files
}
compdef _watchfloor watchfloor
"""
_FISH = """\
# watchfloor: verbs and options. Load it with: watchfloor completion fish | source
function __watchfloor_below
  set -l typed (commandline -opc)
  set -l path
  for word in $typed[2..-1]
    string match -q -- '-*' $word; or set -a path $word
  end
  test "$path" = "$argv[1]"
end
"""


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for name, text in made().items():
        (FILES / f"watchfloor.{name}").write_text(text)
