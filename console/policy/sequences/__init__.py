"""Forbidden sequences of calls: their file, and how they are found."""
