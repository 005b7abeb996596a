"""Mutants of the losses of one term for each element, that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES

IN_ANY_ORDER = "the terms are only added up, and a sum doesn't depend on their order: all that goes into it is turned alike"
SIGN_ONLY = "only the sign of the number is used, and a positive factor leaves it: no difference underflows"
MAGNITUDE = "|-x| = |x|"
NO_TERMS = "without terms torch's mean is NaN, too: 0 / 0; tests/losses/test_edge_shapes.py has batches without elements"

SUM = "return (term.sum() / num_terms if num_terms else term.dtype.type(np.nan), saved)"
ERROR = "return (np.abs(difference), difference)"
HUBER = "return (clipped * (distance - clipped / 2), difference)"

#: The proof, as in survivors.py.
LOSSES: dict[tuple[str, str, str], str] = {
    ("HuberLoss.forward", SUM, "return (term.sum() / num_terms, saved)"): NO_TERMS,
    ("HuberLoss.forward", SUM, SUM.replace("term.sum()", "term.T.sum()")): IN_ANY_ORDER,
    **{
        ("HuberLoss.term", "distance = np.abs(difference)", line): proof
        for line, proof in (
            ("distance = np.abs(difference).T", IN_ANY_ORDER),
            ("distance = np.abs(difference.T)", IN_ANY_ORDER),
            ("distance = np.abs(-difference)", MAGNITUDE),
        )
    },
    ("HuberLoss.term", "clipped = np.minimum(distance, self.delta)", "clipped = np.minimum(self.delta, distance)"): COMMUTES,
    ("HuberLoss.term", HUBER, "return ((clipped * (distance - clipped / 2)).T, difference)"): IN_ANY_ORDER,
    **{
        ("L1Loss.term", ERROR, line): proof
        for line, proof in (
            ("return (np.abs(difference).T, difference)", IN_ANY_ORDER),
            ("return (np.abs(difference.T), difference)", IN_ANY_ORDER),
            ("return (np.abs(-difference), difference)", MAGNITUDE),
            ("return (np.abs(difference), difference * 1.001)", SIGN_ONLY),
            ("return (np.abs(difference), difference * 2)", SIGN_ONLY),
        )
    },
    **{
        ("L1Loss.derivative", line, line.replace(number, f"{number} * {factor}")): SIGN_ONLY
        for line, number in (("difference = saved", "saved"), ("return np.sign(difference)", "difference"))
        for factor in (1.001, 2)
    },
}
