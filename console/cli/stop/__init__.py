"""Verbs that stop agents, show the receipt and rearm."""
