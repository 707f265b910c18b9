"""The panic control, and its small program: a window of its own that asks the guard alone. Standard library, domain and Qt only."""
