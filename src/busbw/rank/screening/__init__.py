"""Programs that a check starts on a node: each measures one thing, prints it, and ends by itself. No MPI.

`copying` moves memory on all cores, `transfer` sends to another host and takes from it.
"""
