"""Which platform a host is, and why."""
