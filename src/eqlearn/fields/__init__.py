"""Fields to partial differential equations."""
