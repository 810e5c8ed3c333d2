"""Values of training: a workload, the plan of its step (`plan`), what logs (`reading`) and traces (`trace`) say."""
