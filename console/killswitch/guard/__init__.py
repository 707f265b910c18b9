"""The guard: its state, what can be asked of it, and its sockets."""
