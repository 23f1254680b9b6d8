"""Trajectories to equations of motion."""
