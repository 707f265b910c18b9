"""What is known of agents: the engine on its loop, the stream of changes, and the views of both."""
