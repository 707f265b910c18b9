"""Paths: what the disk says of them, and what the file rules say of that."""
