"""Two topologies held against each other by meaning."""
