"""Forms whose coefficients linear algebra decides."""
