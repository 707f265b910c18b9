"""What the console and the supervisor say to each other: messages, routes as data, and the client."""
