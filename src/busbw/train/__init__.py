"""Training jobs: what their logs say of step times and throughput. Begin with `step_times`; `reading` reads the files."""
