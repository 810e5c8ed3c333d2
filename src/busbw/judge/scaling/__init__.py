"""How results change with the size of the machine: which may stand on one line, and what the line shows."""
