"""Ranks on the CPUs of a node: where they belong, and where a binding puts them."""
