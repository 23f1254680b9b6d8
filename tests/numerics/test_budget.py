"""Searches that run side by side share the threads of linear algebra."""

import math
import time

import pytest
from threadpoolctl import ThreadpoolController

from eqlearn.numerics.budget import Deadline, one_thread

POOLS = ThreadpoolController().select(user_api="blas")


def threads():
    return {pool["num_threads"] for pool in POOLS.info()}


@pytest.fixture
def two():
    with POOLS.limit(limits=2):
        if threads() != {2}:
            pytest.skip("linear algebra has no second thread here")
        yield


def test_linear_algebra_has_one_thread_within_and_as_many_as_before_after(two):
    with one_thread():
        assert threads() == {1}
    assert threads() == {2}


def test_the_last_search_gives_the_threads_back(two):
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert threads() == {1}
    second.__exit__(None, None, None)
    assert threads() == {2}


def test_a_search_that_fails_gives_them_back_too(two):
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert threads() == {2}


def test_a_part_of_a_deadline_is_over_first_and_never_later():
    now = time.time()
    assert now + 4 < Deadline(math.inf).within(5.0).at < now + 60
    assert Deadline(now + 1).within(5.0) == Deadline(now + 1)
    assert Deadline(math.inf).within(math.inf) == Deadline(math.inf)
