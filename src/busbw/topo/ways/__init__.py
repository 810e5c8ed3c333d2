"""What follows from a topology: the ways through a node, how wide they are, what is near what."""
