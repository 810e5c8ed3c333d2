"""What a platform could reach at best, as a budget."""
