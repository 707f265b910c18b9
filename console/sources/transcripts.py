"""How each agent kind writes down what its answers used: the light part of ``kinds``, for the process that reads beside this one."""

from __future__ import annotations

from console.sources.claude_code.transcripts import TRANSCRIPTS as CLAUDE_CODE
from console.sources.codex.transcripts import TRANSCRIPTS as CODEX

TRANSCRIPTS = (CLAUDE_CODE, CODEX)
VENDORS = {one.source: one.vendor for one in TRANSCRIPTS}
