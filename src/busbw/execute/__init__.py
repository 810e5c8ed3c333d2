"""The door to processes: starts a plan's job, watches its ranks, ends what must end, tells what happened."""
