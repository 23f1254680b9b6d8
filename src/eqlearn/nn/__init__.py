"""What you train: primitives, sparse maps, gates, penalties, the equation learner."""
