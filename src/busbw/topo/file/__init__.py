"""NCCL's topology files: read as NCCL reads them, and written."""
