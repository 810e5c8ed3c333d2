"""Settings: read from wherever they stand, explained, recommended, checked, written."""
