"""What you read: formulas, and all they can become."""
