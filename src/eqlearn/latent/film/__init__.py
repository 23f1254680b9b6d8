"""Films: laws of motion behind pictures that follow each other."""
