"""The time a search may take, and the threads it may use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


@dataclass(frozen=True)
class Deadline:
    """A stop condition by the clock that can be sent to another process."""

    at: float

    def __call__(self) -> bool:
        return time.time() > self.at

    def check(self) -> None:
        """**Raises:** `TimeoutError` once it is over."""
        if self():
            raise TimeoutError

    def within(self, seconds: float) -> Deadline:
        """This one, or in so many seconds from now, whichever comes first."""
        return Deadline(min(self.at, time.time() + seconds))

    def leaves(self, seconds: float) -> bool:
        """Whether something that takes `seconds` would be done in time."""
        return time.time() + seconds <= self.at


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch, in this thread, and NumPy's linear algebra, in the process, on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    _BLAS.enter()
    try:
        yield
    finally:
        _BLAS.leave()
        torch.set_num_threads(before)


class _Blas:
    """The threads of linear algebra, which all searches of a process share: the last one gives them back."""

    def __init__(self) -> None:
        self.lock, self.searches = Lock(), 0
        self.limit: Any = None

    @cached_property
    def pools(self) -> ThreadpoolController:
        return ThreadpoolController()

    def enter(self) -> None:
        with self.lock:
            if self.searches == 0:
                self.limit = self.pools.limit(limits=1, user_api="blas")
            self.searches += 1

    def leave(self) -> None:
        with self.lock:
            self.searches -= 1
            if self.searches == 0:
                self.limit.restore_original_limits()


_BLAS = _Blas()


def never() -> bool:
    """The stop condition that never holds."""
    return False
