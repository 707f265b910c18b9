"""Hooks of programs: whose call it is, what it asks, and the file and settings by which a program asks."""
