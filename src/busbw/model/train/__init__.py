"""Values of training: what a job is, what its step communicates, what that takes."""
