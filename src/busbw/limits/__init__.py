"""What a machine could do at best: the rates of its parts, and what each lets an algorithm reach.

Arithmetic on published rates, never on measurements. Begin with `ceiling`.
"""
