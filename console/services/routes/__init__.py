"""What every route of a service shares: its request read, who asks, its response."""
