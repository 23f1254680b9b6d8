"""The languages that equations are written in, each registered by its name; several equations in one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.export import identifiers, literal
from eqlearn.symbolic.printing import write
from eqlearn.validation.options import checked_choice, enter


@dataclass(frozen=True)
class Export:
    """A language: `write(equation, name)` gives the source of one equation, a function of that name.

    `title` is what the report page calls it. Where the texts are `functions` of one file, the first line of
    each, such as an import, is written once.
    """

    name: str
    title: str
    write: Callable[[Equation, str], str]
    functions: bool = True

    def __post_init__(self) -> None:
        if not callable(self.write):
            raise WrongType(f"export {self.name!r}: `write` must be a function, got {self.write!r}")
        if not self.name or not self.title:
            raise InvalidArgument("an export needs a `name` and a `title`")


def _torch(equation: Equation, name: str) -> str:
    formula = literal(write(equation.expr, equation.variables))
    module = "module" if name == "equation" else f"{name}_module"
    return (
        "from eqlearn import Equation\n\n"
        f"{name} = Equation.parse({formula}, {literal(list(equation.variables))})\n"
        f"{module} = {name}.torch()  # a torch.nn.Module; its constants are parameters\n"
    )


# In the order in which the page offers them.
EXPORTS: dict[str, Export] = {
    export.name: export
    for export in (
        Export("latex", "LaTeX", lambda equation, name: equation.latex(), functions=False),
        Export(
            "text", "text", lambda equation, name: write(equation.expr, equation.variables), functions=False
        ),
        Export("python", "Python", Equation.python),
        Export("torch", "torch", _torch),
        Export("c", "C", Equation.c),
    )
}


def register_export(export: Export) -> Export:
    """Makes a language known by its name: for `source`, and on the report page."""
    if not isinstance(export, Export):
        raise WrongType(f"`export` must be an Export, got {export!r}")
    return enter("an export", export.name, export, EXPORTS)


def function_names(targets: Sequence[str], variables: Sequence[str] = ()) -> list[str]:
    """What the functions are called: `equation`, or after the targets where there are several; a map's are
    called after its variables' next values."""
    if len(targets) == 1:
        return ["equation"]
    taken = identifiers(variables)
    return [f"next_{name}" if name in taken else name for name in identifiers(targets)]


def source(equations: Sequence[Equation], names: Sequence[str], language: str) -> str:
    """The equations in a language, each a function of its name; what all begin with is there once."""
    export = EXPORTS[checked_choice("export", language, EXPORTS)]
    texts = [export.write(equation, name) for equation, name in zip(equations, names, strict=True)]
    if not export.functions:
        return "\n".join(texts)
    head = texts[0].split("\n", 1)[0]
    return "\n".join([texts[0], *(text.removeprefix(head).lstrip("\n") for text in texts[1:])])
