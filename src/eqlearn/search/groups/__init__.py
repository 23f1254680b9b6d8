"""Equations whose constants vary from group to group, or as functions of a parameter."""
