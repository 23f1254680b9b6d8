"""`eqlearn reproduce`: the paper's experiments; nothing else in the package knows the room `paper`."""

from eqlearn.paper.commands import app as reproduce

__all__ = ["reproduce"]
