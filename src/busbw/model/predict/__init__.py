"""What NCCL would choose, and what a collective is predicted to take. Begin with `prediction`."""
