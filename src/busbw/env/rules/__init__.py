"""Rules for settings, one concept a file."""
