"""Checks every shape and type annotation of the package while the tests run."""

import jaxtyping
import pytest

jaxtyping.install_import_hook("eqlearn", "beartype.beartype")


@pytest.fixture
def unchecked_types():
    """Lets an argument of the wrong type through to the library's own check, as it is for users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
