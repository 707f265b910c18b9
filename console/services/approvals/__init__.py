"""Approvals and dry runs: what waits for an operator, what a call could touch, and the decision on disk before it counts."""
