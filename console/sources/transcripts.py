"""How each agent kind writes down what its answers used: the light part of ``kinds``, for the process that reads beside this one."""

from __future__ import annotations

from console.sources.claude_code.transcripts import TRANSCRIPTS as CLAUDE_CODE
from console.sources.codex.transcripts import TRANSCRIPTS as CODEX
from console.sources.gemini.transcripts import TRANSCRIPTS as GEMINI
from console.sources.opencode.transcripts import KILO_TRANSCRIPTS as KILO
from console.sources.opencode.transcripts import TRANSCRIPTS as OPENCODE
from console.sources.pi.transcripts import OPENCLAW_TRANSCRIPTS as OPENCLAW
from console.sources.pi.transcripts import TRANSCRIPTS as PI
from console.sources.qwen.transcripts import TRANSCRIPTS as QWEN

TRANSCRIPTS = (CLAUDE_CODE, CODEX, GEMINI, QWEN, OPENCODE, KILO, PI, OPENCLAW)
VENDORS = {one.source: one.vendor for one in TRANSCRIPTS}
