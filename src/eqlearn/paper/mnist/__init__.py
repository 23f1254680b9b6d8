"""MNIST arithmetic: images, pairs of them, the heads behind the encoder, the recipes, one trial of each."""
