"""The judging of calls: the rules in force, the pages about them, and what is remembered of sessions."""
