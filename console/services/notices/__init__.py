"""Notices to agents, on their way into the context of whoever works: with the next answer of a hook or a gate, or the next message."""
