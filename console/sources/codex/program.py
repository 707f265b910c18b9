"""By what Codex's processes are known."""

from __future__ import annotations

from console.sources.programs import Program

CODEX = Program("codex", "Codex", ("@openai/codex",))
