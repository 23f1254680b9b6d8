"""Whether an equation is the equation."""
