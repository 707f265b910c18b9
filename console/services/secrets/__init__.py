"""Secrets: rotated and proven, shown in the armed light, and read without holding up the loop."""
