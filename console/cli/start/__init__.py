"""Verbs that start agents, talk to them and take them over."""
