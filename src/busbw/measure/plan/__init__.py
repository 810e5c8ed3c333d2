"""From a request to a plan: every decision is taken and written down before anything starts.

Begin with `planning`, which asks the backend of a request.
"""
