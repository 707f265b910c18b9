"""The webhook: alerts, signed, to one receiver. Written to disk first, tried again for a day. Nothing waits for it."""
