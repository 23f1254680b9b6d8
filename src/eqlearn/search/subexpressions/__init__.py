"""Laws put together from a bank of subexpressions, which grows from the columns by size."""
