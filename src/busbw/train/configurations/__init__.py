"""Configurations of other programs, read into workloads: Megatron-LM's arguments, NeMo's values, torchtitan's file.

Begin with `registry`, which tells what a text is. Each reader returns what is said, and where; `said` makes a workload
of that and asks by name for what is missing.
"""
