"""Hosts for tests: several of them on one machine, in namespaces, with an sshd and, where asked for, a Slurm."""
