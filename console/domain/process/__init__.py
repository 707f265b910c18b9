"""The process itself: its priority, its files, and places where tests break it."""
