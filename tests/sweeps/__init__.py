"""`busbw fabric` on eight hosts behind three leaves and a spine, over real MPI, with faults in the network."""
