"""The way from window and command line to a supervisor."""
