"""Data sets that ship with the package, and tables from files."""
