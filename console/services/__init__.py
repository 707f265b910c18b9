"""One package per capability: each joins machinery for what operators can do. The supervisor composes them."""
