"""What predictions are asked with: a captured host as the machine, measured points of it, the plan of a step."""
