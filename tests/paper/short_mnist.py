"""Image arithmetic, shorter than ours; run as a script, a trial that is killed."""

import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from eqlearn import LatentSettings
from eqlearn.paper.mnist import recipes, search, trials
from eqlearn.paper.mnist.digits import load_digits

CONDITION = recipes.Condition(dataset="digits")
TRAINED = recipes.Condition(recipe="short", dataset="digits")
STEPS = 30


def add_short(patch, warm_steps=150):
    """Makes search and training on the small digits short, with `patch`, a way to set attributes."""
    settings = LatentSettings(warm_steps=warm_steps, joint_steps=20, refine_steps=150, max_starts=1)
    ours = replace(recipes.SEARCHES["digits"], settings=settings, primitives="id mul", pairs=500)
    for module in (recipes, search):
        patch(module, "SEARCHES", {**recipes.SEARCHES, "digits": ours})
    theirs = recipes.RECIPES["paper-half"]
    phases = tuple(replace(phase, steps=STEPS) for phase in theirs.learn)
    gradient = replace(theirs, name="short", learn=phases, primitives="one id*2 mul")
    patch(recipes, "RECIPES", {**recipes.RECIPES, "short": gradient})


def _kill_at(step, record):
    if record.phase == "fine-tune" and record.step == step:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    add_short(setattr)
    trials.followed = partial(trials.followed, every=0.0)  # the state is written at every record
    trials.trained(
        TRAINED,
        load_digits("digits"),
        3,
        state=Path(sys.argv[1]),
        on_record=partial(_kill_at, 10),
        record_every=5,
    )
