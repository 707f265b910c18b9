"""The portal and Envoy: which destinations a sandboxed agent reaches, validated, applied live, logged."""
