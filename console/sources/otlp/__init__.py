"""Telemetry that programs send by OpenTelemetry: the receiver, what it heard, and the source that shows it."""
