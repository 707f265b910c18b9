"""What verbs print, and how it fits a terminal."""
