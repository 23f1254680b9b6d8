"""Equations behind encoders and inside recurrent cells, trained with them."""
