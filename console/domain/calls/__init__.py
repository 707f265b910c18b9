"""Calls of agents: what is asked, what a person decides, and sequences of them."""
