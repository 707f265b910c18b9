"""Daemons of agents: told to the guard before a kill, shown before it, and asked to drop a killed session after it."""
