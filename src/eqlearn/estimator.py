"""The scikit-learn face of the search: a table in, an equation out."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from eqlearn.core.equation import Equation
from eqlearn.core.primitives import PrimitivesLike
from eqlearn.discovery.explore import Outcome
from eqlearn.discovery.run import SCIENCE, Found, Settings, discover
from eqlearn.discovery.select import Candidate, Rule
from eqlearn.errors import InvalidArgument, UnknownName, WrongType

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# So many rows are kept for drawing; all rows serve the fit.
_DRAWN_ROWS = 2000
