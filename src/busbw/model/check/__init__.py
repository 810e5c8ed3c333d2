"""Checks of nodes: what a node finds of itself (`screening`), and what is concluded of it (`report`)."""
