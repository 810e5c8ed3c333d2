"""Sentences of any program read by their words: what they say of a failure, and of what."""
