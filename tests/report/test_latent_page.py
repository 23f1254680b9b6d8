"""The page of a law behind encoders is one file without script that shows what was found."""

import re

import numpy as np
import pytest

from eqlearn.latent.page import agreement_text, latent_page
from eqlearn.report.charts import Frame, ticks
from made_latent import made_found


def test_it_holds_everything_that_was_found():
    text = latent_page(made_found())

    assert "2 of 2 independent starts came to this law." in text
    assert "as well as a smooth network" in text
    assert text.count("<svg viewBox") == 4  # a whisker, the bend, the fit, the training
    for words in ("warm start 2", "short list", "refinement", "can’t decide between them", "variance left"):
        assert words in text


def test_it_runs_nothing_and_loads_nothing():
    text = latent_page(made_found())

    assert "<script" not in text
    assert "{{" not in text
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=|url\(", text)


def test_names_are_escaped():
    text = latent_page(made_found("a<b", 'x"&<script>'))

    assert "a&lt;b" in text
    assert "<script" not in text
    assert "<b" not in text.replace("<body", "")


def test_a_law_that_leaves_more_than_the_network_is_not_praised():
    text = latent_page(made_found(error=0.1))

    assert "there is more in the data than it says" in text
    assert 'class="verdict none"' in text


@pytest.mark.parametrize(
    ("agreed", "starts", "words"),
    [(1, 1, "nothing confirms"), (1, 3, "take it with care"), (3, 3, "3 of 3 independent starts")],
)
def test_agreement_is_said_in_words(agreed, starts, words):
    assert words in agreement_text(agreed, starts)


def test_a_law_without_its_network_or_history_has_a_page():
    text = latent_page(made_found(network=None, history=(), equivalent=(), constants=((),)))

    assert "every number in it is exact" in text
    assert "No other law on the short list" in text


def test_a_line_stops_where_it_leaves_the_frame():
    frame = Frame((0.0, 4.0), (0.0, 1.0))
    drawn = frame.line(np.arange(6.0), np.array([0.1, 0.2, np.nan, 3.0, 0.4, 0.5]))

    assert drawn.count("<path") == 2


def test_ticks_are_round_numbers_inside():
    assert ticks(-0.3, 2.2) == [0.0, 1.0, 2.0]
