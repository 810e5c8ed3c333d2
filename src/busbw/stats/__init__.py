"""Statistics on the samples of one point: up to tens of thousands of numbers, in plain Python."""
