"""Executed calls: judged like any other, then run by Watchfloor inside the group of the agent that asked."""
