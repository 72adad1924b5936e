"""Student's t distribution with any number of degrees of freedom, and Welch's interval. Standard library only."""
import math


def beta_fraction(a, b, x):
    """The continued fraction of the incomplete beta function (Lentz's method); converges for x < (a + 1) / (a + b + 2)."""
    tiny, c, d = 1e-300, 1.0, 1 / max(1 - (a + b) * x / (a + 1), 1e-300)
    result = d
    for m in range(1, 500):
        for numerator in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                          -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d = 1 / ((1 + numerator * d) or tiny)
            c = (1 + numerator / c) or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return result


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


def two_sided(t, freedom):
    """P(|T| >= t)."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def quantile(level, freedom):
    """The t with P(|T| <= t) = level."""
    low, high = 0.0, 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - two_sided(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def welch(first, second, level=0.95):
    """(difference of the means, half width of its interval), with the variances of both groups. Each has two values or more."""
    means = [sum(values) / len(values) for values in (first, second)]
    errors = [sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)
              for values, mean in zip((first, second), means)]
    error = sum(errors)
    if error == 0:
        return means[0] - means[1], 0.0
    freedom = error ** 2 / sum(own ** 2 / (len(values) - 1) for own, values in zip(errors, (first, second)))
    return means[0] - means[1], quantile(level, freedom) * math.sqrt(error)
# SPDX-License-Identifier: Apache-2.0
