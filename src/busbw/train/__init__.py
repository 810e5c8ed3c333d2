"""What a training job communicates, computes and takes, and what its logs say: values in, values out.

Begin with `workloads`, which reads what a job is; `layout` says how ranks share it and whether that can be, `shape` how
large it is, `step` what one communicates, `timing` what that takes. For logs begin with `step_times`; `reading` has
their forms, `overlap` what a trace exposes, `scaling` how jobs compare.
"""
