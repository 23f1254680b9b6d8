"""Searches with units."""
