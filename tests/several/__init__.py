"""Runs over several hosts, started as a user would: under Slurm, in its queue."""
