"""The ReLU networks stand where an equation stands."""

import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.paper.baselines import ReLUCell, relu_network


def test_it_has_the_shape_of_an_eql():
    x = torch.rand(4, 7, 3)

    assert relu_network(3, 2)(x).shape == EQL(3, 2, seed=0)(x).shape


def test_the_papers_has_two_hidden_layers_of_fifty():
    widths = [p.shape[0] for p in relu_network(2).parameters() if p.dim() == 2]

    assert widths == [50, 50, 1]


def test_an_empty_layer_is_refused():
    with pytest.raises(InvalidArgument, match="`width` must be at least 1, got 0; `depth`"):
        relu_network(2, width=0, depth=0)


def test_a_cell_gives_the_next_states_or_adds_their_change():
    y, z, scales = torch.rand(2, 5), torch.rand(1, 5), torch.tensor([2.0, 0.5])
    told = [ReLUCell(2, 1, form=form, dt=0.1, scales=scales, seed=4)(y, z) for form in ("map", "residual")]

    torch.testing.assert_close(told[1], y + 0.1 * told[0])
