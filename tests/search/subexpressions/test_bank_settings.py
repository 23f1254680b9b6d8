"""Settings of subexpressions: what is looked up where."""

from eqlearn.search.settings import DEFAULTS
from eqlearn.search.subexpressions.bank_settings import BankSettings, Span


def test_no_span_asks_for_more_than_the_bank_holds():
    bank = DEFAULTS.bank
    spans = [span for span in (*bank.spans, *bank.wide_spans) if not span.monomials]

    assert all(max(span.simplest, span.twice, span.coupled) <= span.entries <= bank.entries for span in spans)
    assert all(span.rows <= bank.exact_rows for span in spans)


def test_a_span_has_fewer_terms_than_rows_tell_apart():
    assert all(s.simplest + s.monomials < s.rows for s in (*BankSettings().spans, *BankSettings().wide_spans))


def test_by_default_one_entry_is_taken_off():
    assert (Span(8, 100, 24).twice, Span(8, 100, 24).coupled, Span(8, 100, 24).nested) == (0, 0, False)
