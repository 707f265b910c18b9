"""Messages about rules, approvals and hooks, and what a policy is made from."""
