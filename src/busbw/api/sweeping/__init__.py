"""Fabrics: sweeps over their pairs planned and measured (`sweeps`), read (`swept`), and judged (`fabrics`)."""
