"""One thread for a search: small tensors are fastest on it, and sums in one order give the same digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import Any

import torch
from threadpoolctl import ThreadpoolController


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
