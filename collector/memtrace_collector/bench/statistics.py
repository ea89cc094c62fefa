"""Shares with their uncertainty. Pure; the same seed gives the same interval."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""Standard normal quantile of 97.5 %."""
BOOTSTRAP_ROUNDS = 2_000


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``total`` with a 95 % interval; all between 0 and 1, NaN-free."""

    hits: int
    total: int
    low: float = 0.0
    high: float = 1.0

    @property
    def value(self) -> float | None:
        """None where there was nothing to count."""
        return self.hits / self.total if self.total else None

    def to_json(self) -> dict[str, float | int | None]:
        return {
            "hits": self.hits,
            "total": self.total,
            "share": None if self.value is None else round(self.value, 4),
            "low": round(self.low, 4),
            "high": round(self.high, 4),
        }


def wilson(hits: int, total: int, z: float = Z_95) -> tuple[float, float]:
    """Score interval of Wilson (1927) for a share of independent cases; (0, 1) for none."""
    if not total:
        return 0.0, 1.0
    share = hits / total
    spread = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    middle = share + z * z / (2 * total)
    scale = 1 + z * z / total
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def share(marks: Iterable[bool]) -> Share:
    """A share of independent cases, with Wilson's interval."""
    counted = list(marks)
    return Share(sum(counted), len(counted), *wilson(sum(counted), len(counted)))


def clustered_share(
    marks: Sequence[tuple[str, bool]], *, rounds: int = BOOTSTRAP_ROUNDS, seed: int = 0
) -> Share:
    """A share of cases that come in clusters (dialogues), with a percentile bootstrap interval.

    Whole clusters are drawn with replacement, because cases of one dialogue resemble each
    other. Where drawing shows no spread (one cluster, or all right, or all wrong), Wilson's
    interval stands in.

    Args:
        marks: cluster and whether the case was right.
    """
    clusters: dict[str, tuple[int, int]] = {}
    for name, right in marks:
        hits, total = clusters.get(name, (0, 0))
        clusters[name] = (hits + right, total + 1)
    plain = share(right for _, right in marks)
    if len(clusters) < 2 or plain.hits in (0, plain.total):
        return plain
    low, high = _drawn(list(clusters.values()), rounds, random.Random(seed))  # noqa: S311  # no secret
    return Share(plain.hits, plain.total, low, high) if low < high else plain


def _drawn(
    clusters: Sequence[tuple[int, int]], rounds: int, source: random.Random
) -> tuple[float, float]:
    shares = []
    for _ in range(rounds):
        drawn = source.choices(clusters, k=len(clusters))
        shares.append(sum(hits for hits, _ in drawn) / sum(total for _, total in drawn))
    shares.sort()
    return shares[int(0.025 * rounds)], shares[min(rounds - 1, int(0.975 * rounds))]


def percentile(values: Iterable[float], share_below: float) -> float:
    """The nearest-rank percentile; 0 for no values."""
    ordered = sorted(values)
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share_below * len(ordered)) - 1))]
