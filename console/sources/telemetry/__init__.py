"""What telemetry says: items, sums, and the words that an agent kind has for them."""
