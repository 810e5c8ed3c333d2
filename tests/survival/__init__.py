"""Failures injected for real into runs on several hosts, and what must hold after each of them."""
