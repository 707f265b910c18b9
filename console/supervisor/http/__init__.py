"""The HTTP server: doors on sockets, who may ask, and what is taken out of answers."""
