"""Verbs on rules: checked, explained, edited, exchanged."""
