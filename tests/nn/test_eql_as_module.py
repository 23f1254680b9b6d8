"""The network is an ordinary module: it can be copied, cast, mapped, compiled and spread over processes."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PAPER

SMALL = "one id square sin mul"


def data(features: int = 2, rows: int = 16, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(rows, features, generator=torch.Generator().manual_seed(0), dtype=dtype) * 2 - 1


def mse(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return (net(x) - x.prod(dim=-1, keepdim=True)).square().mean(dim=(-2, -1))


def random_mask_(net: EQL, density: float) -> EQL:
    generator = torch.Generator().manual_seed(0)
    for linear in net.linears:
        linear.keep_(torch.rand(linear.mask.shape, generator=generator) < density)
    return net


@pytest.mark.parametrize(
    "options", [{}, {"members": 3}, {"gates": True}, {"members": 2, "gates": True, "skip": True}]
)
def test_the_state_dict_is_the_whole_state(options):
    first, second = EQL(2, seed=0, **options), EQL(2, seed=99, **options)
    random_mask_(first, 0.5)(data())

    second.load_state_dict(first.state_dict())

    assert torch.equal(first(data()), second(data()))


@pytest.mark.parametrize("gates", [False, True])
def test_a_deep_copy_is_equal_and_independent(gates):
    net = random_mask_(EQL(2, members=2, gates=gates, seed=0), 0.5)
    twin = copy.deepcopy(net)
    assert torch.equal(net(data()), twin(data()))

    nn.init.zeros_(twin.readout.raw)

    assert bool(net.readout.raw.any())


def test_a_network_pickles():
    net = random_mask_(EQL(2, members=2, seed=0), 0.5)

    assert torch.equal(pickle.loads(pickle.dumps(net))(data()), net(data()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("gates", [False, True])
def test_the_dtype_can_be_changed(dtype, gates):
    net = random_mask_(EQL(2, skip=True, bias=True, gates=gates, seed=0), 0.5).to(dtype)

    y = net(data(dtype=dtype))

    assert y.dtype == dtype
    assert net.readout.mask.dtype == torch.bool


def test_the_network_works_under_autocast():
    net = EQL(2, skip=True, bias=True, seed=0)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net(data())

    torch.testing.assert_close(y.float(), net(data()), rtol=0.1, atol=0.1)


@pytest.mark.parametrize("gates", [False, True])
def test_vmap_over_stacked_networks_is_a_population(gates):
    singles = [EQL(2, primitives=SMALL, gates=gates, seed=s) for s in range(3)]
    population = EQL(2, primitives=SMALL, members=3, gates=gates, seed=0)
    params, buffers = stack_module_state(singles)
    blank = copy.deepcopy(singles[0])

    together = vmap(lambda p, b, x: functional_call(blank, (p, b), (x,)), in_dims=(0, 0, None))(
        params, buffers, data()
    )

    torch.testing.assert_close(together, population(data()))


def test_per_sample_gradients_by_vmap_sum_to_the_gradient():
    net, x = EQL(2, primitives=SMALL, seed=0), data()
    params = dict(net.named_parameters())

    def one_row(params, row):
        return functional_call(net, params, (row,)).square().sum()

    per_sample = vmap(torch.func.grad(one_row), in_dims=(None, 0))(params, x)
    net(x).square().sum().backward()

    for name, parameter in net.named_parameters():
        torch.testing.assert_close(per_sample[name].sum(dim=0), parameter.grad, rtol=1e-4, atol=1e-5)


def test_the_network_trains_behind_an_encoder():
    model, x = nn.Sequential(nn.Linear(3, 2), EQL(2, primitives=SMALL, seed=0)), data(3)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)

    losses = []
    for _ in range(50):
        optimiser.zero_grad()
        losses.append(mse(model, x))
        losses[-1].backward()
        optimiser.step()

    assert bool(losses[-1] < losses[0])


def test_second_derivatives_exist():
    net = EQL(2, primitives=PAPER, seed=0).double()

    assert torch.autograd.gradgradcheck(net, data(rows=2, dtype=torch.float64).requires_grad_())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # raised inside torch's own compiler
@pytest.mark.parametrize("options", [{}, {"members": 3, "gates": True}], ids=["single", "population"])
def test_the_compiler_takes_the_whole_network_and_gives_the_same(options, unchecked_types):
    net, twin = (random_mask_(EQL(2, skip=True, bias=True, seed=0, **options), 0.7) for _ in range(2))
    compiled = torch.compile(net, fullgraph=True)

    for _ in range(2):
        mse(compiled, data()).sum().backward()
        mse(twin, data()).sum().backward()

    for mine, theirs in zip(net.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-4, atol=1e-5)


def distributed_gradients(rank: int, folder: str) -> None:
    """Half of the rows on each of two processes; the first saves the gradients both agree on."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder}/rendezvous", rank=rank, world_size=2)
    net = random_mask_(EQL(2, members=2, skip=True, seed=rank), 0.7)  # the first process's weights must win
    model = nn.parallel.DistributedDataParallel(net)
    mse(model, data()[rank::2]).sum().backward()
    torch.save([p.grad for p in net.parameters()], f"{folder}/gradients{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_give_the_gradients_of_one(tmp_path):
    net = random_mask_(EQL(2, members=2, skip=True, seed=0), 0.7)
    mse(net, data()).sum().backward()

    torch.multiprocessing.spawn(distributed_gradients, args=(str(tmp_path),), nprocs=2)

    for rank in range(2):
        for mine, theirs in zip(net.parameters(), torch.load(tmp_path / f"gradients{rank}.pt"), strict=True):
            torch.testing.assert_close(theirs, mine.grad)
