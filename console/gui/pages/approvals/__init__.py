"""Approvals: what waits for a human, over all agents, shown to the last character, and decided on exactly what was shown."""
