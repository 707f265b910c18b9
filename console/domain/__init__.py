"""Values only: no input or output, no clock, no third-party package. Every other room may import this one."""
