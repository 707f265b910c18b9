"""The pages of the console. interface.py is what every page is; registry.py lists those that work."""
