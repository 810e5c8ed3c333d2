"""The door to processes: starts the job of a plan, watches its ranks, ends what must end, tells what happened.

Begin with `run`; `foreign` does the same for programs of the user, which give no sign of life but their rows.
"""
