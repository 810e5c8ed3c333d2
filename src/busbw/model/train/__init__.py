"""Values of training jobs: what a log says of steps (`reading`), and what a trace says of communication (`trace`)."""
