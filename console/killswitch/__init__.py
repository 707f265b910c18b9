"""The guard: latch, registry, reaper, proof. Standard library and domain only."""
