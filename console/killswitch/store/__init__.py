"""What the guard keeps on disk: whole files, journal, registry, latch, causes."""
