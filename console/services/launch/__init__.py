"""Starting agents: their environment, their limits, their tools, what they could do at worst, and their end."""
