"""Many small networks of different structure as one tensor program, with their analytic Jacobian."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from eqlearn.nn.eql import EQL, argument_rows, layer_widths
from eqlearn.nn.primitives import Primitive
from eqlearn.search.networks.structures import Structure


class _Units:
    """One layer's units of all members: gathers arguments by kind, so each kind is one vector operation."""

    def __init__(self, layers: Sequence[tuple[Primitive, ...]], height: int) -> None:
        kinds: dict[Primitive, list[tuple[int, ...]]] = {}
        places: dict[Primitive, list[tuple[int, int]]] = {}
        for member, units in enumerate(layers):
            for unit, (primitive, rows) in enumerate(zip(units, argument_rows(units), strict=True)):
                kinds.setdefault(primitive, []).append(tuple(member * height + r for r in rows))
                places.setdefault(primitive, []).append((member, unit))
        self.width = max(len(units) for units in layers)
        self.members = len(layers)
        self.kinds = [(p, torch.tensor(rows).mT.contiguous(), len(rows)) for p, rows in kinds.items()]
        total = sum(count for _, _, count in self.kinds)
        order = torch.full((self.members * self.width,), total)  # absent units read the row of zeros
        flat = [member * self.width + unit for p in kinds for member, unit in places[p]]
        order[torch.tensor(flat)] = torch.arange(total)
        self.order = order

    def __call__(self, g: Tensor, guarded: bool) -> Tensor:
        rows = g.shape[-1]
        flat = g.reshape(-1, rows)
        out = []
        for primitive, index, count in self.kinds:
            if primitive.arity == 0:
                out.append(flat.new_full((count, rows), float(primitive())))
            else:
                arguments = flat.index_select(0, index.reshape(-1)).split(count)
                out.append(primitive(*arguments, guarded=guarded))
        out.append(flat.new_zeros(1, rows))
        return torch.cat(out).index_select(0, self.order).view(self.members, self.width, rows)


def _rows(stack: Tensor, index: Tensor) -> Tensor:
    """From each member's stack `(members, n, rows)`, the rows in `index` `(members, k)`, which counts
    through all members' stacks."""
    return stack.view(-1, stack.shape[-1]).index_select(0, index.view(-1)).view(*index.shape, -1)


def _spread(values: Tensor, masks: Sequence[Tensor]) -> list[Tensor]:
    """The values in the places that the masks, one after the other, leave open; zero elsewhere."""
    pieces = values.split([int(mask.sum()) for mask in masks])
    return [
        values.new_zeros(mask.shape).masked_scatter(mask, piece)
        for mask, piece in zip(masks, pieces, strict=True)
    ]


class Population:
    """Networks of the same depth, inputs and outputs, each with units and a mask of its own.

    A member is a vector of its active weights, padded with zeros to the longest: `theta`, `(members,
    weights)`. Nothing here changes `theta` or the masks: `restrict` and `select` give new populations.
    """

    def __init__(self, structures: Sequence[Structure], masks: Sequence[Sequence[Tensor]]) -> None:
        first = structures[0]
        self.structures = tuple(structures)
        self.masks = tuple(tuple(m) for m in masks)
        self.depth = len(first.layers)
        self.skip, self.bias = first.skip, first.bias
        self.out_features = first.out_features
        self.members = len(structures)
        shapes = [s.shapes() for s in structures]
        self.heights = [max(s[level][0] for s in shapes) for level in range(self.depth + 1)]
        units = [[s.layers[level] for s in structures] for level in range(self.depth)]
        self.units = [_Units(u, self.heights[level]) for level, u in enumerate(units)]
        self.widths = layer_widths(first.in_features, [u.width for u in self.units], self.skip, self.bias)
        self._index()

    def _index(self) -> None:
        """Where each active weight sits: in the padded maps, and in the stacks of slopes and inputs."""
        sizes = [h * w for h, w in zip(self.heights, self.widths, strict=True)]
        where: list[tuple[Tensor, Tensor, Tensor]] = []
        for structure, masks in zip(self.structures, self.masks, strict=True):
            places, outs, ins = [], [], []
            for level, mask in enumerate(masks):
                out, inp = mask.nonzero(as_tuple=True)
                if level > 0:  # inputs and the constant stand behind the widest member's units
                    own = len(structure.layers[level - 1])
                    inp = torch.where(inp >= own, inp + self.units[level - 1].width - own, inp)
                places.append(out * self.widths[level] + inp + sum(sizes[:level]))
                outs.append(out + sum(self.heights[:level]))
                ins.append(inp + sum(self.widths[:level]))
            where.append((torch.cat(places), torch.cat(outs), torch.cat(ins)))
        self.counts = torch.tensor([len(p) for p, _, _ in where])
        longest = max(int(self.counts.max()), 1)
        shape = (self.members, longest)
        self.places = torch.full(shape, sum(sizes))  # padding points behind the end
        self.outs = torch.full(shape, sum(self.heights))
        self.ins = torch.zeros(shape, dtype=torch.int64)
        for i, (place, row, column) in enumerate(where):
            self.places[i, : len(place)] = place
            self.outs[i, : len(place)] = row
            self.ins[i, : len(place)] = column
        member = torch.arange(self.members)[:, None]
        self.outs += member * (sum(self.heights) + 1)
        self.ins += member * sum(self.widths)
        self.padding = torch.arange(longest) >= self.counts[:, None]
        self._sizes = sizes

    @staticmethod
    def of(network: EQL) -> tuple[Population, Tensor]:
        """The population, and its weights, that a network (of any number of members) is."""
        count = network.members
        layers = [n.linears for n in ([network] if count is None else map(network.member, range(count)))]
        masks = [[layer.mask.cpu() for layer in own] for own in layers]
        population = Population([Structure.of(network)] * len(layers), masks)
        values = [[layer.settled()[layer.mask].cpu().double() for layer in own] for own in layers]
        return population, population.packed([torch.cat(own) for own in values])

    @staticmethod
    def started(
        structures: Sequence[Structure], weights: Sequence[Sequence[Tensor]]
    ) -> tuple[Population, Tensor]:
        """The population of networks with these weights; a weight of zero is not there."""
        population = Population(structures, [[w != 0 for w in own] for own in weights])
        return population, population.packed([torch.cat([w[w != 0] for w in own]) for own in weights])

    def packed(self, values: Sequence[Tensor]) -> Tensor:
        """The active weights of each member, padded with zeros: `(members, weights)`."""
        theta = values[0].new_zeros(self.places.shape)
        for row, value in zip(theta, values, strict=True):
            row[: len(value)] = value
        return theta

    def maps(self, theta: Tensor) -> list[Tensor]:
        """The padded weight matrices, `(members, out, in)` for each layer."""
        flat = theta.new_zeros(self.members, sum(self._sizes) + 1).scatter(1, self.places, theta)
        blocks = flat[:, :-1].split(self._sizes, dim=1)
        return [b.view(self.members, h, w) for b, h, w in zip(blocks, self.heights, self.widths, strict=True)]

    def evaluate(self, theta: Tensor, x: Tensor, guarded: bool = False) -> Tensor:
        """Outputs `(members, out, rows)` on feature-major inputs `(in, rows)`."""
        return self._forward(self.maps(theta), x, guarded)[0]

    def _forward(
        self, maps: list[Tensor], x: Tensor, guarded: bool
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        shared = x.expand(self.members, *x.shape)
        ones = x.new_ones(self.members, 1, x.shape[-1])
        h = shared
        seen: list[Tensor] = []
        slopes_at: list[Tensor] = []
        for level in range(self.depth + 1):
            parts = [h]
            if self.skip and level > 0:
                parts.append(shared)
            if self.bias:
                parts.append(ones)
            inputs = torch.cat(parts, dim=1) if len(parts) > 1 else h
            g = torch.bmm(maps[level], inputs)
            seen.append(inputs)
            if level == self.depth:
                return g, seen, slopes_at
            slopes_at.append(g)
            h = self.units[level](g, guarded)
        raise AssertionError("unreachable: the last level returns")

    def linearise(self, theta: Tensor, x: Tensor, guarded: bool = False) -> tuple[Tensor, Tensor]:
        """Outputs `(members, out, rows)` and their slopes `(members, weights, out·rows)`.

        One backward pass per output gives every row's slope with respect to all pre-activations; the
        slope with respect to a weight is that times the weight's input.
        """
        maps = [m.requires_grad_() for m in self.maps(theta.detach())]
        with torch.enable_grad():
            y, seen, at = self._forward(maps, x, guarded)
            grads = [
                torch.autograd.grad(y[:, k].sum(), at, retain_graph=k + 1 < self.out_features)
                for k in range(self.out_features)
            ]
        rows = x.shape[-1]
        taken = _rows(torch.cat([s.detach() for s in seen], dim=1), self.ins)
        blocks = []
        for k, steep in enumerate(grads):
            # At the edge of a domain, as of √0, a slope is infinite: that row says nothing of the weights.
            slopes = [s.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0) for s in steep]
            last = x.new_zeros(self.members, self.out_features + 1, rows)  # the end: a row for padding
            last[:, k] = 1.0
            blocks.append(_rows(torch.cat([*slopes, last], dim=1), self.outs) * taken)
        return y.detach(), blocks[0] if len(blocks) == 1 else torch.cat(blocks, dim=2)

    @torch.no_grad()
    def turn_signs(self, theta: Tensor, x: Tensor) -> Tensor:
        """Flips the sign of arguments that a guard sees only by magnitude where they are mostly negative, so
        that the plain formula is defined on the data."""
        _, _, at = self._forward(self.maps(theta), x, guarded=True)
        signs = []
        for level, g in enumerate(at):
            sign = torch.ones(g.shape[:2], dtype=g.dtype)
            for member, structure in enumerate(self.structures):
                units = structure.layers[level]
                for primitive, rows in zip(units, argument_rows(units), strict=True):
                    for k in primitive.even:
                        if g[member, rows[k]].mean() < 0:
                            sign[member, rows[k]] = -1.0
            signs.append(sign)
        last = torch.ones(self.members, self.out_features + 1, dtype=theta.dtype)
        flips = torch.cat([*signs, last], dim=1).view(-1)
        return theta * flips[self.outs]

    def readout(self) -> Tensor:
        """Which weights, `(members, weights)`, belong to the linear read-out."""
        first = sum(self.heights[:-1])
        own = self.outs - torch.arange(self.members)[:, None] * (sum(self.heights) + 1)
        return (own >= first) & ~self.padding

    def weights(self, index: int, theta: Tensor) -> list[Tensor]:
        """One member's own weight matrices, without padding."""
        return _spread(theta[index, : int(self.counts[index])], self.masks[index])

    def network(self, index: int, theta: Tensor) -> EQL:
        """One member as a network of its own."""
        return self.structures[index].network(self.weights(index, theta), self.masks[index])

    def restrict(
        self, theta: Tensor, keep: Tensor, members: Sequence[int] | None = None
    ) -> tuple[Population, Tensor]:
        """The population of `members` (all, if none are named; repeats allowed) with only the weights in
        `keep`, `(len(members), weights)`, and those weights."""
        chosen = range(self.members) if members is None else members
        kept = [row[: int(self.counts[i])] for row, i in zip(keep, chosen, strict=True)]
        masks = [_spread(own, self.masks[i]) for own, i in zip(kept, chosen, strict=True)]
        population = Population([self.structures[i] for i in chosen], masks)
        values = [theta[i, : len(own)][own] for own, i in zip(kept, chosen, strict=True)]
        return population, population.packed(values)
