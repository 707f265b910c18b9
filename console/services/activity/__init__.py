"""What agents did: taken in, kept, and shown page by page."""
