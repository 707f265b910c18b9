"""Snapshots before destructive actions, and their restore, only inside a workspace (openat2)."""
