"""What the judging of calls remembers of sessions."""
