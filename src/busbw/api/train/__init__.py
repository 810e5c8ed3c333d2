"""What is behind `busbw train`: `reading` of logs and traces, `scaling` of several."""
