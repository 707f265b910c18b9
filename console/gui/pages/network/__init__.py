"""Network: what PROXIED agents may reach, edited with Envoy's word on each change, and what they asked for."""
