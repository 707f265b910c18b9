"""What a person sees before the first agent: where agents are looked for, what holds, hooks, and the set-up in four steps."""
