"""The fleet: every agent tree, live."""
