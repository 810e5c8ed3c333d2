"""A topology from what knows it: a file, a platform, a host."""
