"""MNIST arithmetic: images, pairs of them, an encoder, the recipes, one trial of each."""
