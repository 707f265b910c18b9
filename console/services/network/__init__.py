"""The network of agents: the allowlist and its review, the ratchet, and how each agent is cut off."""
