"""The rules of `busbw topo check`, one concept a module. Each takes what is checked and yields findings. Pure."""
