"""Every measured size explained: what applies to it, what its ceiling is, and where the rest went. Pure."""
