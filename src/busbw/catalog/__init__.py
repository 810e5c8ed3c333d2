"""Facts that travel with busbw as data."""
