"""Everything tuned in the search for a law of motion behind a film, each number with what it is for."""

from __future__ import annotations

from eqlearn.validation.options import check_fields, tuned


@tuned
class FilmSettings:
    """How a film is searched; the same for every film.

    **Pictures.** They are averaged down to at most `side` pixels a side and, to be compared, blurred by
    `blur` pixels, so that a sharp edge that moves by a pixel changes them smoothly. Of their principal
    components as many are kept as hold the share `kept` of their variance, at most `components`; a component
    that a frame does not share with the next (correlation below `steady`) is noise.

    **Coordinates.** Frames are joined to their `neighbours` nearest, lengths of paths are measured from
    `landmarks`, and at most `embedded` frames take part. The curve through them has `knots`, is smoothed by
    `smoothing`, and followed `rounds` times. One coordinate serves if the curve leaves at most `curved` of
    the pictures' variance. For two, pictures are blurred by the share `broad` of their larger side, and a
    bend of the plane is worth `flat` of what it changes lengths by; of pairs with so many `partners` for each
    frame, lengths are measured where the distance of pictures is between the share `nearest` of the largest
    and another: each of `moves` is a blur in pixels, this share, and how often all frames are moved.

    **Bend.** The read-out of a coordinate is a straight line and Legendre polynomials up to `bend_degree`,
    each of which is worth a residual `bend` times as large, the higher ones more: a thing that moves without
    changing its shape changes its picture at a rate that does not depend on where it is, but perspective and
    borders do.

    **Laws.** Sums of at most `most_terms` terms are ranked in the weak form, with `scales` and `shifts` of
    the coordinate tried for terms that are not powers; the `proposed` best of each length are simulated over
    pieces of films, as long as the shares `horizons` of the whole, from `shortest` to `longest` frames, in at
    most `steps` of the fit; after each, the best `survivors` of each length go on. So many `parents` of each
    length grow: of the laws of at most `grown` terms that have one more, the `children` that promise most. A
    step of integration is at most the share `stride` of the time in which a coordinate moves by its spread.

    **Choice.** Laws of first order are simulated if one leaves less than `first` of the weak form. Fitted on
    the first `trained` of each film, a law foretells the rest. Each number of a law has to make what it
    misses `close` times smaller, and each node of its formula counts as the part `node` of a number, where
    errors below `negligible` of the spread are equal; one that leaves more than `unexplained` of it is not
    called a law.

    **Networks.** Encoder and decoder have at most `units` radial units, whose `widths` are in units of the
    gaps between them, and are ridge regressions with the best of `ridges` on frames held back.
    """

    side: int = 48
    blur: float = 1.0
    kept: float = 0.9995
    components: int = 40
    steady: float = 0.3
    neighbours: int = 8
    landmarks: int = 250
    embedded: int = 2000
    knots: int = 30
    smoothing: float = 1e-3
    rounds: int = 6
    curved: float = 0.05
    broad: float = 0.2
    flat: float = 0.01
    partners: int = 100
    nearest: float = 0.2
    moves: tuple[tuple[float, float, int], ...] = ((3.0, 0.85, 150), (2.0, 0.7, 40), (2.0, 0.55, 40))
    bend_degree: int = 7
    bend: float = 0.05
    most_terms: int = 2
    scales: tuple[float, ...] = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
    shifts: int = 25
    proposed: tuple[int, ...] = (6, 8)
    horizons: tuple[float, ...] = (0.1, 0.3, 0.6, 1.0)
    survivors: tuple[int, ...] = (3, 2, 2, 2)
    steps: int = 12
    shortest: int = 8
    longest: int = 400
    stride: float = 0.35
    parents: tuple[int, ...] = (0, 2, 1, 1)
    grown: int = 4
    children: int = 2
    first: float = 0.1
    trained: float = 0.75
    close: float = 1.3
    node: float = 0.25
    negligible: float = 2e-3
    unexplained: float = 0.3
    units: int = 120
    widths: tuple[float, ...] = (1.0, 2.0, 4.0)
    ridges: tuple[float, ...] = (1e-8, 1e-6, 1e-4)

    def __post_init__(self) -> None:
        check_fields(self, ("side", "components", "neighbours", "landmarks", "embedded", "knots", "rounds"))
        check_fields(self, ("bend_degree", "most_terms", "shifts", "close", "units"))
        check_fields(self, ("kept", "bend", "trained", "negligible", "unexplained"), least=0)


FILM = FilmSettings()
