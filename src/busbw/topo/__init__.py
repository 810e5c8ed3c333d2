"""A node as NCCL sees it: read from its topology files, made, drawn, compared and checked."""
