"""What a tool call does: by the statement it carries, its server and the words of its name, never by one list of names alone."""
