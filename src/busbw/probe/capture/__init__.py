"""The door to the machine."""
