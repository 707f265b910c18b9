"""Starting an agent so that it can be held: managed processes, bubblewrap, containers; environment and hardening."""
