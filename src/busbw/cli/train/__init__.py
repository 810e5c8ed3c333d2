"""The verbs below `busbw train`."""
