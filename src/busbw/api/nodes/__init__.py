"""Checks of nodes: what each is screened for (`screenings`), and the stages of a check (`checks`)."""
