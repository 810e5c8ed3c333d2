"""What busbw can do, as functions: the verbs of the command line and of `import busbw`."""
