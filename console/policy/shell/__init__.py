"""Shell strings: cut into commands, their programs and arguments judged."""
