"""What the logs of NCCL say about a job.

`reader` reads them in one pass, `case` works out who is who, the modules named `*_rules` ask it. Begin with
`diagnosis`.
"""
