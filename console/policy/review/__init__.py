"""What a person reads about rules and allowlists: lint, drafts, exchange, expected verdicts."""
