"""The wire: HTTP and events of the supervisor over its unix socket, and the guard's lines. Nothing here blocks."""
