"""The product's own options as data, their layers, and the places (XDG, state directory, sockets)."""
