"""What one agent did: a feed that is read, searched and followed."""
