"""Verbs on what is kept: log, rollback records, sessions, secrets, settings."""
