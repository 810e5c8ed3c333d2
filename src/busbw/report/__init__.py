"""Results for people: the terminal, and one HTML file."""
