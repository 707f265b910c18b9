"""What is seen: sources in their own threads, processes counted, and agents of which the guard knows nothing."""
