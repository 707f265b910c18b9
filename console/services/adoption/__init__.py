"""Adoption: which process an agent is, taking it over, and when nothing of it is left."""
