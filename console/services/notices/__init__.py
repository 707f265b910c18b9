"""Notices to agents, put into the context of the running agent: with the next answer of a hook or a gate, or with the next message."""
