"""How long a job may take beside its measuring."""

# Start-up, machine rates, verification and ending of a run over MPI.
MPI_GRACE_S = 60.0
# A look at every host.
VISIT_S = 60.0
# An answer of a batch system.
SUBMITTING_S = 60.0
