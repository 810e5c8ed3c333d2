"""What this machine is: `read` turns captured text into values, `capture` fetches the text."""
