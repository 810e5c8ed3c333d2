"""Verbs about nodes: whether they are fit (`check`), and which makes groups of them bad (`isolate`)."""
