"""Notices that an owner finds beside the work: why an agent was halted."""
