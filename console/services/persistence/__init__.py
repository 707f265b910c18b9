"""What could start an agent again: a baseline before a session, a look after each kill, and what the looks found."""
