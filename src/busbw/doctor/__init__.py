"""What the logs of NCCL say about a job."""
