"""What can be computed and read: primitives, sparse layers, networks, penalties, equations, files."""
