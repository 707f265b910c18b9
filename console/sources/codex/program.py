"""By what Codex's processes are known, and where its program is installed."""

from __future__ import annotations

from pathlib import Path

from console.sources.programs import Program

CODEX = Program("codex", "Codex", ("@openai/codex",), service=(("app-server",), "Codex's app-server"))
USUAL = ("/usr/local/bin/codex", "/usr/bin/codex", "/opt/codex/bin/codex")
IN_HOME = (".local/bin/codex",)


def native(path: Path) -> Path:
    """npm's ``codex`` is a script for Node beside the real program: the latter is started, without Node in between."""
    if path.suffix != ".js":
        return path
    package = path.parent.parent
    roots = (package / "node_modules" / "@openai", package.parent)
    for root in roots:
        for found in sorted(root.glob("codex-linux-*/vendor/*/bin/codex")) + sorted(root.glob("codex-linux-*/vendor/*/codex/codex")):
            return found.resolve(strict=True)
    raise ValueError("it is a script whose program is not beside it")
