"""From a request to a plan: every decision is taken and written down before anything starts.

Begin with `planning`; `foreign` does the same for programs of others.
"""
