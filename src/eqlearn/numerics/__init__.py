"""What all rooms compute with: least squares, standard errors, scores and tolerances, budgets."""
