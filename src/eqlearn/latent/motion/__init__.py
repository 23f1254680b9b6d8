"""Equations of motion with a hidden parameter: cells, encoders of series, and both trained together."""
