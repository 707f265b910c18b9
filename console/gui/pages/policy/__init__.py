"""The policy page."""
