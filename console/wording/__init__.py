"""Texts for people that the window and the command line share: names, places and examples."""
