"""What measures: a backend names the program of a rank and reads what it wrote."""
