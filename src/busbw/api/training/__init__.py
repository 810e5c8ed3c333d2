"""Training jobs: the families of verbs below `busbw train`."""
