"""A cell of fields takes the derivatives it says, unrolls, is read as an equation and is trained."""

import numpy as np
import pytest
import torch

from eqlearn import CellShape, Equation, FieldCell, InvalidArgument, rollout
from eqlearn.latent.motion.field_cell import Kernel

X = np.linspace(0, 2 * np.pi, 32, endpoint=False)
LINEAR = CellShape(form="ode", hidden_layers=1, primitives="id*3")


def heat(cell, constant=0.5):
    """The cell with the weights of u_t = constant * u_xx."""
    with torch.no_grad():
        hidden = cell.network.linears[0].raw
        hidden.copy_(torch.eye(*hidden.shape[-2:]))
        cell.network.readout.raw.zero_()
        place = cell.variables.index("u_xx")
        cell.network.readout.raw[..., 0, place] = constant
    return cell


def test_a_cell_sees_derivatives_along_every_axis():
    cell = FieldCell(["u"], {"x": X, "y": X}, periodic=["x", "y"])
    u = torch.tensor(np.sin(X)[:, None] * np.cos(2 * X)).float()

    found = dict(zip(cell.variables, cell.features(u.reshape(-1, 1)), strict=True))

    assert cell.variables == ("u", "u_x", "u_y", "u_xx", "u_xy", "u_yy")
    torch.testing.assert_close(found["u_yy"], -4 * u.flatten(), atol=1e-3, rtol=0)
    expected = torch.tensor(-2 * np.cos(X)[:, None] * np.sin(2 * X)).float()
    torch.testing.assert_close(found["u_xy"], expected.flatten(), atol=1e-3, rtol=0)


@pytest.mark.parametrize("kernels", [0, 3])
def test_a_cell_unrolls_as_the_equation_it_reads_as(kernels):
    cell = heat(
        FieldCell(["u"], {"x": X}, periodic=["x"], kernels=kernels, shape=LINEAR, dt=0.05, substeps=4)
    )
    start = torch.tensor(np.sin(X)).float()[:, None]

    after = rollout(cell, start, torch.zeros(0, 1), 10)

    torch.testing.assert_close(after[-1], start * np.exp(-0.25), atol=1e-3, rtol=0)
    (equation,) = Equation.read_all(cell.right_hand_side, cell.variables)
    assert equation.matches("0.5*u_xx", tolerance=1e-6)


def test_ends_of_an_axis_that_is_not_periodic_stay():
    cell = heat(FieldCell(["u"], {"x": X}, shape=LINEAR, dt=0.01))
    start = torch.tensor(np.cos(X)).float()[:, None]

    after = rollout(cell, start, torch.zeros(0, 1), 5)[-1]

    torch.testing.assert_close(after[[0, -1]], start[[0, -1]])
    torch.testing.assert_close(after[8:24], start[8:24] * np.exp(-0.025), atol=1e-3, rtol=0)


def test_members_are_cells_of_their_own():
    cell = heat(FieldCell(["u"], {"x": X}, 1, periodic=["x"], kernels=3, shape=LINEAR, members=2, seed=0))
    y, z = torch.randn(2, 32, 3), torch.randn(2, 1, 3)

    torch.testing.assert_close(cell(y, z)[1], cell.member(1)(y[1], z[1]), atol=1e-4, rtol=1e-4)


def test_gradients_find_a_diffusion_constant():
    cell = heat(FieldCell(["u"], {"x": X}, periodic=["x"], shape=LINEAR, dt=0.1), 0.1)
    start = torch.tensor(np.stack([np.sin(X), np.cos(2 * X)], axis=1)).float()
    target = start * torch.exp(-0.5 * torch.tensor([1.0, 4.0]) * 0.1)
    optimiser = torch.optim.Adam([cell.network.readout.raw], lr=0.02)

    for _ in range(300):
        optimiser.zero_grad()
        loss = (cell(start, torch.zeros(0, 2)) - target).square().mean()
        loss.backward()
        optimiser.step()

    assert float(loss.detach()) < 1e-5


def test_moments_of_a_learned_stencil_stay_those_of_the_derivative():
    kernel = Kernel(3, 2, 0.1)
    with torch.no_grad():
        kernel.moved += torch.randn(kernel.moved.shape)
    x = 0.1 * torch.arange(-3, 4)

    moments = [float(kernel.weights.detach() @ x**power) for power in range(4)]

    assert moments == pytest.approx([0, 0, 2, 0], abs=1e-2)


def test_a_stencil_without_a_free_weight_is_refused():
    with pytest.raises(InvalidArgument, match="no free weight"):
        FieldCell(["u"], {"x": X}, kernels=1)
