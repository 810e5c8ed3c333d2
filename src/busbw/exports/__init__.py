"""Results in the formats of other tools: values in, text or bytes out, one format a module."""
