"""Everything tuned in the search for a law behind encoders, each number with what it is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eqlearn.dynamics.forms import STEPPERS, CellForm
from eqlearn.latent.motion.given import Formula, check_given
from eqlearn.latent.motion.series import EncoderShape
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.search.settings import SCIENCE
from eqlearn.training.schedule import Phase, Schedule
from eqlearn.validation.options import checked_choice, tuned


@tuned
class LatentSettings:
    """How a law behind encoders is searched for; the same for every task.

    **Training.** `batch` rows a step; `warm_steps` for a start, `refine_steps` for the law that was chosen,
    `joint_steps` for each law on the short list; `rate` is the highest learning rate of a cycle and `decay`
    the weight decay of AdamW; `clip` bounds a gradient's norm; `width` is that of the head's two layers. With
    `huber`, errors beyond that part of the target's spread count by their size, not their square; without it,
    they do in joint training beyond `robust` robust standard deviations of the residuals (Huber 1964). Rows
    beyond `outlying` of them have no part in the last fit; on a product of MNIST digits, misread ones cost it
    two points of a hundred before. Errors below `exact`, of the target's spread, are no outliers.

    **Starts.** At least `starts`, at most `max_starts` (`tries` times as many while none explains anything);
    no more once a second one comes within `confirmed` times the best error. `held` is the share of rows to
    measure on; `measured` the most rows of any measure.

    **Comparison.** `functions` in the basis of a bend; `structures`, the most that are enumerated, in at most
    `needed` variables (with more, structures only grow), on `screened` rows first and from `serving_starts`
    starts; `kept` of them on `compared` rows. `tolerance`: how many times the smallest error, or the head's,
    a law on the short list may leave, `rival` how many times that of a listed law as long; `shortlist`, its
    length. Laws that differ by less than `alike` times their error are one, and a function is a disguise if
    a straight line leaves less than `straight` of its variance. If none leaves less than `superior` times the
    head's error (times `confirmed`), structures with unknown functions are filled in; if none is as good as
    the head, for `growth` rounds the best and the smallest `grown_from` grow; `front_seconds`: for `discover`
    on the latents as they are.

    **Decision.** `close`: how many times the smallest error after joint training a shorter law may leave and
    still be chosen, and the part `unseen` of the error on rows held back: what networks learn by heart is no
    evidence. Errors below `negligible` times the head's are equal. `removal`: how many times the error
    may be left once a constant is taken out or made a simple number, which is at most the share `snapped`
    away. `explained`: the least part of the variance that a head must explain for a search to go on.
    """

    batch: int = 256
    warm_steps: int = 1_500
    joint_steps: int = 500
    refine_steps: int = 1_500
    rate: float = 3e-3
    refine_rate: float = 1e-3
    decay: float = 1e-2
    clip: float = 1.0
    width: int = 32
    huber: float | None = None
    robust: float | None = 1.345
    outlying: float = 5.0
    exact: float = 1e-4

    starts: int = 2
    max_starts: int = 4
    tries: int = 3
    confirmed: float = 2.0
    held: float = 0.15
    measured: int = 4_000

    functions: int = 10
    structures: int = 1_500
    needed: int = 5
    straight: float = 1e-3
    screened: int = 300
    kept: int = 60
    compared: int = 1_500
    serving_starts: int = 6
    tolerance: float = 4.0
    shortlist: int = 6
    alike: float = 0.05
    rival: float = 2.0
    close: float = 1.3
    unseen: float = 0.05
    removal: float = 1.1
    negligible: float = 0.03
    snapped: float = 0.03
    explained: float = 0.05
    superior: float = 0.1
    growth: int = 3
    grown_from: int = 8
    front_seconds: float = 10.0


LATENT = LatentSettings()

# The latents of the warm start only lead to the law: each series' own is fitted afterwards.
STRUCTURES = LatentSettings(
    warm_steps=400, max_starts=3, structures=400, kept=36, screened=200, compared=1_000, serving_starts=4,
    growth=0,
)  # fmt: skip
DISTIL: Schedule = (Phase(name="distillation", steps=6_000, lr=3e-3, decay="cosine"),)


@tuned
class DynamicsSearch:
    """How equations of motion behind an encoder are searched for; the same for every system.

    `form` says what the equations give: rates of change ("ode", integrated by the `stepper`), the change in a
    step per unit of time ("residual"), or the next states ("map"); `primitives` what they may be made of, and
    `given` what is known of them: by the names of their states, formulas in the names of states and latents,
    `{"x": "v"}`, as text or `Equation`; of `equation.torch()` the constants are fitted with the rest.

    `encoder` is the shape of the `SeriesEncoder` that is used by default, one that suits the length of the
    series unless given. `structures` says how structures are compared. `orders` times, a law is offered the
    next order of its expansion. `distil` are the phases in which the encoder learns each series' latent (its
    read-out alone, without any), in batches of `batch`, and `candidates` the most laws that are followed
    through the rollout for a glance, beside sums of products; the best `finished` of them are finished.
    """

    form: CellForm = "ode"
    stepper: str = "rk4"
    primitives: PrimitivesLike = SCIENCE
    given: Mapping[str, Formula] = field(default_factory=dict, hash=False)
    encoder: EncoderShape | None = None
    structures: LatentSettings = STRUCTURES
    candidates: int = 3
    finished: int = 2
    orders: int = 1
    distil: Schedule = DISTIL
    batch: int = 128

    def __post_init__(self) -> None:
        check_given(self.given)
        checked_choice("`form`", self.form, ("map", "residual", "ode"))
        checked_choice("`stepper`", self.stepper, STEPPERS)
        parse_kinds(self.primitives)


SEARCH = DynamicsSearch()
