"""Verbs that show agents: what runs, what it did, what it cost."""
