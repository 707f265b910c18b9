"""What a person is told of rules and allowlists: lint, drafts, exchange, expected verdicts."""
