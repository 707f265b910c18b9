"""Agents in containers: Docker and gVisor, their engine, image and gate."""
