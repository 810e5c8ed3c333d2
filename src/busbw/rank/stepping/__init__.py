"""A training step replayed: `moves` orders its calls, `replay` repeats it, over MPI or NCCL."""
