"""Verbs about nodes: whether they are fit (`check`)."""
