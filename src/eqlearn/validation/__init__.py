"""What users hand over, checked in one place."""
