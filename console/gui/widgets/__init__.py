"""Things to look at and press: they know nothing of supervisor, guard or wire."""
