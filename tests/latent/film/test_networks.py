"""Networks between pictures and coordinates."""

import numpy as np
import torch

from eqlearn.io.made_films import make_films
from eqlearn.latent.film.networks import fitted_networks, spread
from eqlearn.latent.film.pictures import Components


def test_pictures_go_to_their_place_and_back():
    films, paths = make_films("spring", films=2, frames=80, noise=0.0)
    frames = [film[..., None] for film in films]

    model = fitted_networks(frames, Components.of(frames), np.concatenate(paths))

    with torch.no_grad():
        places = model(torch.from_numpy(frames[0]))
        pictures = model.decode(places)
    assert float((places - torch.from_numpy(paths[0])).abs().max()) < 0.02
    assert float((pictures - torch.from_numpy(frames[0])).abs().max()) < 0.1


def test_centres_are_spread_and_no_more_than_there_are_points():
    points = np.array([[0.0], [0.0], [1.0], [0.5]])

    assert sorted(spread(points, 10)[:, 0]) == [0.0, 0.5, 1.0]
