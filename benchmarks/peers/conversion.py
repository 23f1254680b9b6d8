"""The peers' ways of writing a formula, read as equations; and a formula without the dust of its fit."""

from __future__ import annotations

import ast

import numpy as np
import sympy as sp

from eqlearn import Equation, InvalidExpression

# The judge lets constants move by this much; terms that matter less than it are as good as absent.
DUST = 1e-3
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
PLAIN = ("sin", "cos", "tanh", "exp")


def equation(system: str, text: str, variables: tuple[str, ...], X: np.ndarray) -> Equation:
    """The equation that a system's answer says."""
    if system == "gplearn":
        text = _infix(ast.parse(text, mode="eval").body, variables, X)
    elif system == "operon":
        text = text.replace("^", "**")
    return Equation.parse(text, variables)


def _infix(node: ast.expr, variables: tuple[str, ...], X: np.ndarray) -> str:
    match node:
        case ast.Name(name):
            return name
        case ast.Constant(float(number) | int(number)):
            return repr(number)
        case ast.UnaryOp(ast.USub(), operand):
            return f"(-{_infix(operand, variables, X)})"
        case ast.Call(ast.Name(function), arguments):
            return _called(function, [_infix(a, variables, X) for a in arguments], variables, X)
    raise InvalidExpression(f"{ast.unparse(node)[:50]!r} is not part of a program of gplearn")


def _called(function: str, arguments: list[str], variables: tuple[str, ...], X: np.ndarray) -> str:
    match function, arguments:
        case ("add" | "sub" | "mul" | "div", [a, b]):
            return f"({a}{INFIX[function]}{b})"
        case "square", [g]:
            return f"({g})**2"
        case ("log" | "sqrt", [g]):
            return f"{function}({_magnitude(g, variables, X)})"
        case "pow", [a, b]:
            return f"({_magnitude(a, variables, X)})**({b})"
        case (name, [g]) if name in PLAIN:
            return f"{name}({g})"
    raise InvalidExpression(f"gplearn has no function {function!r} of {len(arguments)} arguments here")


def _magnitude(g: str, variables: tuple[str, ...], X: np.ndarray) -> str:
    """gplearn takes roots, logarithms and powers of magnitudes; no bars where the data have one sign."""
    values = Equation.parse(g, variables)(X)
    if np.all(values >= 0):
        return g
    return f"-({g})" if np.all(values <= 0) else f"abs({g})"


def without_dust(whole: Equation, X: np.ndarray) -> Equation:
    """The formula without the terms that are below 0.1 % of the spread of their sum, at any depth."""
    return Equation(_swept(whole.expr, whole.variables, X), whole.variables).simplified()


def _swept(expr: sp.Expr, variables: tuple[str, ...], X: np.ndarray) -> sp.Expr:
    if not expr.args:
        return expr
    terms = [_swept(a, variables, X) for a in expr.args]
    if expr.is_Add:
        spread = float(np.std(Equation(sp.Add(*terms), variables)(X)))
        sizes = [float(np.max(np.abs(Equation(t, variables)(X)))) for t in terms]
        terms = [t for t, size in zip(terms, sizes, strict=True) if not size <= DUST * spread]
    return expr.func(*terms)
