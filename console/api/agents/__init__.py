"""Messages about agents: what they did, how they start, are taken over and shown."""
