"""Small clients for agents: standard library only."""
