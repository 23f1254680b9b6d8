"""Formulas as trees that vary and are selected (genetic programming)."""
