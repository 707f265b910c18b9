"""What git would run by itself: the repository that a call would use, and the settings, hooks and attributes in it that name programs."""
