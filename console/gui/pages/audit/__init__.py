"""Audit: the hash-chained record of everything, read in pages and verified."""
