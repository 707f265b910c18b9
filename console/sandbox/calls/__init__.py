"""One judged call in a sandbox of its own: its plan, its steps, its execution."""
