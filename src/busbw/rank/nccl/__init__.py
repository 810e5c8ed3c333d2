"""Measuring over NCCL."""
