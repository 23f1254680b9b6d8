"""Small networks, many at a time, fitted by second order and made sparse."""
