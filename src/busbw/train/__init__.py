"""Training jobs: what logs say of steps and throughput, and how jobs scale. Begin with `step_times`."""
