"""Budgets: what is used of which limit, what a change would do, and what agents report."""
