"""The way to the guard, its start, and a kill when it does not answer."""
