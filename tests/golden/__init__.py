"""Golden files: what the product says, frozen before its code moves. ``python -m tests.golden --write`` makes them again."""
