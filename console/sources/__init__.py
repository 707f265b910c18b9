"""What is running on this host and what it has used, seen by several sources behind one interface."""
