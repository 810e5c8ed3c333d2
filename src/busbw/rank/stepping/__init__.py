"""A training step replayed: `replay` repeats it, in the order of `busbw.model.train.moves`, over MPI or NCCL."""
