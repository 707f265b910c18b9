"""What the engine is told, what it wants done, and the plans of dry runs."""
