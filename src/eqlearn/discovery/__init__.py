"""The search: small random networks, least squares, elimination, simplification, selection, the judge."""
