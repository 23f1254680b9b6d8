"""Equations inside deep networks: encoders, recurrent cells, and the systems of the paper made of them."""
