"""A file system of a few names, for evaluators of policies: what a path leads to, by which names, and what runs under a name."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from os.path import join

PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


@dataclass(frozen=True)
class World:
    """`tree`: absolute path -> "d", "f", "h" (a file with two names), "p" (a FIFO) or ">TARGET" (a link)."""

    tree: dict[str, str]
    workspace: str
    cwd: str
    context: str = "c"
    _programs: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What was found by each name: nothing in a world changes, and a reference asks for each name of its rules at each call."""

    def walk(self, path: str) -> list[str]:
        """The names by which the kernel goes along `path`: one with each link that it meets, the real one last (empty: a loop)."""
        forms, done, hops, rest = list[str](), "", 0, [part for part in join(self.cwd, path).split("/") if part not in ("", ".")]
        while rest:
            part, rest = rest[0], rest[1:]
            link = self.tree.get(f"{done}/{part}", "")
            if part != ".." and link[:1] == ">":
                forms += [] if ".." in rest else ["/".join([done, part, *rest])]
                hops += 1
                done, rest = "" if link[1] == "/" else done, [part for part in link[1:].split("/") if part not in ("", ".")] + rest
            else:
                done = done.rpartition("/")[0] if part == ".." else f"{done}/{part}"
            if hops > 40:
                return [""]
        return [*forms, done or "/"]

    def below(self, folder: str) -> list[str]:
        """The files and links below it, as "/rest"."""
        real = folder.rstrip("/")
        return [name[len(real) :] for name in self.tree if name.startswith(real + "/") and self.tree[name] != "d"]

    def program(self, name: str) -> str:
        """The file that `name` runs; empty when there is none."""
        if name not in self._programs:
            reals = (self.walk(place)[-1] for place in ([name] if "/" in name else [f"{folder}/{name}" for folder in PATH]))
            self._programs[name] = next((real for real in reals if self.tree.get(real) in ("f", "h")), "")
        return self._programs[name]

    def means(self, glob: str, name: str) -> bool:
        """Does the glob of a file rule mean this name? `*` stays in a folder, `**` crosses folders; a folder may end in a `/`."""
        return bool(compiled(glob, self.workspace, self.context).fullmatch(name))


@lru_cache(4096)
def compiled(glob: str, workspace: str, context: str) -> re.Pattern[str]:
    """Variables are text, never a pattern; a `:*` at the end means nothing."""
    known = {"${WORKSPACE}": re.escape(workspace), "${CONTEXT_ID}": re.escape(context)}
    known |= {"**/": "(?:.*/)?", "**": ".*", "*": r"(?!(?<=/)(?:/|\Z))[^/]*"}
    parts = re.split(r"(\$\{\w+\}|\*\*/|\*\*|\*)", glob.removesuffix(":*"))
    return re.compile("".join(known.get(part) or re.escape(part) for part in parts), re.S)
