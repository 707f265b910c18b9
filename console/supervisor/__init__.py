"""The headless daemon: compose is the only place where ports meet adapters; runner carries commands out; server answers."""
