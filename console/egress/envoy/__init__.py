"""Envoy: its configuration, its process or container, its own interface."""
