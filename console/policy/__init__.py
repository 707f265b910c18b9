"""Pure rules over configuration: what reviewers should see in an allowlist, how long a workspace stays. No clock, no input or output."""
