"""The engine: events in, commands out. No clock, socket, Docker or Qt."""
