"""What agents spent: transcripts read, prices, and the store of both."""
