"""Verbs that need machinery but no daemon: ``python -m console.supervisor oneshot VERB``."""
