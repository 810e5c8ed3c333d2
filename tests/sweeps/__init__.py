"""`busbw fabric` on eight hosts behind three leaves and a spine, over real MPI: faults that are put into the network."""
