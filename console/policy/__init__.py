"""Pure rules: what a tool call may do. An empty or broken policy denies."""
