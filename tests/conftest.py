"""Checks every shape and type annotation of the package while the tests run."""

import hypothesis
import jaxtyping
import pytest

jaxtyping.install_import_hook("eqlearn", "beartype.beartype")

# Reproducible, and without a time limit per example, which a busy machine would break.
hypothesis.settings.register_profile("eqlearn", deadline=None, derandomize=True)
hypothesis.settings.load_profile("eqlearn")


@pytest.fixture
def unchecked_types():
    """Lets an argument of the wrong type through to the library's own check, as it is for users."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
