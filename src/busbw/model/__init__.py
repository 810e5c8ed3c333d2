"""The values busbw computes with. All frozen; all JSON as they stand."""
