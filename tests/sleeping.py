"""How ranks of Open MPI wait where several tests have the same cores: they sleep, which costs a call 0.1 ms or more."""

SLEEPING = {
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
    "OMPI_MCA_threads_pthreads_nanosleep_time": "50000",
}
