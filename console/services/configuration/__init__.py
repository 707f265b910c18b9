"""The settings of a running instance: what is in force, what the files say now, and changes of them on record."""
