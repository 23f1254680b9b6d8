"""The equations of a run as source code: one function for each target, in one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.export import identifiers, literal
from eqlearn.symbolic.printing import write

# What can be copied from the page, by its title there.
LANGUAGES = {"LaTeX": "latex", "text": "text", "Python": "python", "torch": "torch", "C": "c"}


def function_names(targets: Sequence[str], variables: Sequence[str] = ()) -> list[str]:
    """What the functions are called: `equation`, or after the targets where there are several; a map's are
    called after its variables' next values."""
    if len(targets) == 1:
        return ["equation"]
    taken = identifiers(variables)
    return [f"next_{name}" if name in taken else name for name in identifiers(targets)]


def source(equations: Sequence[Equation], names: Sequence[str], language: str) -> str:
    """The equations in a language, each a function of its name; what all begin with is there once."""
    texts = [_SOURCES[language](equation, name) for equation, name in zip(equations, names, strict=True)]
    if language not in ("python", "torch", "c"):
        return "\n".join(texts)
    head = texts[0].split("\n", 1)[0]
    return "\n".join([texts[0], *(text.removeprefix(head).lstrip("\n") for text in texts[1:])])


def _torch(equation: Equation, name: str) -> str:
    formula = literal(write(equation.expr, equation.variables))
    return (
        "from eqlearn import Equation\n\n"
        f"{name} = Equation.parse({formula}, {literal(list(equation.variables))})\n"
        f"{_module(name)} = {name}.torch()  # a torch.nn.Module; its constants are parameters\n"
    )


def _module(name: str) -> str:
    return "module" if name == "equation" else f"{name}_module"


_SOURCES: dict[str, Callable[[Equation, str], str]] = {
    "text": lambda equation, name: write(equation.expr, equation.variables),
    "latex": lambda equation, name: equation.latex(),
    "python": Equation.python,
    "torch": _torch,
    "c": Equation.c,
}
