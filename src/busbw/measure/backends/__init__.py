"""What measures: a backend says what it takes, offers and needs, names what is started, and reads what that wrote.

One module each, found by name in `registry`, as are those of other packages. Begin with `backend`.
"""
