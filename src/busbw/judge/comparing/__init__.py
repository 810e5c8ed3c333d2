"""Whether one side is faster than another, and whether that can be asked of these results."""
