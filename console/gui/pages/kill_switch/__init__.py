"""The kill switch: can this host be stopped, by which paths, what a press will do, what earlier presses proved."""
