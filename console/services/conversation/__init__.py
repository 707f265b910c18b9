"""Talking to started programs: what is said to them, and what they write."""
