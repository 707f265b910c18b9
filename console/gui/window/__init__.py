"""The window around the pages: top bar, banner, navigation, status bar, palette, and the wiring of models and pages."""
