"""What starts ranks: a launcher turns a program and a placement into a job, as values."""
