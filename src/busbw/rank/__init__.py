"""The program one rank runs: `python -m busbw.rank RUN_DIRECTORY ATTEMPT`, started by an MPI launcher."""
