"""Verbs that limit agents: approvals, budgets, network and allowlist."""
