"""Codebooks of the `turbo` codec, and the guesses with which a search for a code begins."""
import bisect
import math
import struct

# The range of the search for a better scale, by bits: 5 candidates from 1 - reach to 1 + reach times the plain scale,
# or 17 at half the spacing and twice the range. For Gaussian rows of 64 to 512 elements, both are within about two
# percent of the smallest error of any evenly spaced candidates.
REACH = [0, 0, 0.12, 0.15, 0.16, 0.13, 0.1, 0.11, 0.14]

# Gauss-Legendre quadrature with eight points. The cells are narrow, so it is accurate to the last digits, and, unlike
# differences of the cumulative distribution, has no cancellation.
QUADRATURE = [
    (0.1834346424956498, 0.3626837833783620), (0.5255324099163290, 0.3137066458778873),
    (0.7966664774136267, 0.2223810344533745), (0.9602898564975362, 0.1012285362903763),
]


def as_float(x):
    """The nearest 32-bit float."""
    return struct.unpack("f", struct.pack("f", x))[0]


# A cell of the normal distribution: its mean, and the derivatives of the mean with respect to both ends.
def inner_cell(low, high):
    middle, half = (low + high) / 2, (high - low) / 2

    def density(offset):
        """Relative to the density in the middle."""
        return math.exp(-offset * (middle + offset / 2))

    mass = moment = 0
    for point, weight in QUADRATURE:
        offset = point * half
        above, below = density(offset), density(-offset)
        mass += weight * half * (above + below)
        moment += weight * half * offset * (above - below)
    mean = middle + moment / mass
    return mean, density(-half) * (mean - low) / mass, density(half) * (high - mean) / mass


def outer_cell(low):
    density = math.exp(-low * low / 2) / math.sqrt(2 * math.pi)
    mean = density / (math.erfc(low / math.sqrt(2)) / 2)
    return mean, mean * (mean - low), 0


def cells_of(levels):
    ends = [0] + [(a + b) / 2 for a, b in zip(levels, levels[1:])]
    return [inner_cell(low, high) for low, high in zip(ends, ends[1:])] + [outer_cell(ends[-1])]


def improve(levels):
    """One Newton step on level - mean = 0, where a mean depends on its level and the two adjacent ones. Returns the
    distance that the levels moved."""
    above, step = [], []
    for index, (mean, per_low, per_high) in enumerate(cells_of(levels)):
        # The low end of the first cell stays at zero.
        below = -per_low / 2 if index else 0
        pivot = 1 + below - per_high / 2 - (below * above[-1] if index else 0)
        step.append((mean - levels[index] - (below * step[-1] if index else 0)) / pivot)
        above.append(-per_high / 2 / pivot)
    for index in reversed(range(len(levels))):
        if index + 1 < len(levels):
            step[index] -= above[index] * step[index + 1]
        levels[index] += step[index]
    return max(map(abs, step))


def lloyd_max_levels(bits):
    """The levels of the optimal (Lloyd-Max) quantizer with 2^bits levels for the standard normal distribution: each
    level is the mean of its cell, and cells meet halfway between levels. The positive half in ascending order; the
    negative half is symmetric."""
    count = 1 << (bits - 1)
    levels = [(index + 0.5) / count * (1 + 0.45 * bits) for index in range(count)]
    # Lloyd's iteration moves each level to the mean of its cell. It converges from any start, but takes a million
    # rounds for 256 levels; here it only has to come close enough for Newton's method.
    for _ in range(500):
        levels = [mean for mean, _, _ in cells_of(levels)]
    for _ in range(50):
        moved = improve(levels)
        if levels != sorted(levels) or levels[0] <= 0:
            break
        if moved < 1e-12:
            return levels
    raise ArithmeticError(f"Newton's method does not converge for {bits} bits")


def turbo_levels(bits):
    """The levels as floats."""
    levels = lloyd_max_levels(bits)
    for level in levels:
        nearest = as_float(level)
        number = struct.unpack("i", struct.pack("f", nearest))[0] + (1 if level >= nearest else -1)
        middle = (nearest + struct.unpack("f", struct.pack("i", number))[0]) / 2
        # The levels are accurate to 1e-13, so rounding differences between machines do not decide.
        if abs(middle - level) < 1e-11:
            raise ArithmeticError("two floats are equally near to a level")
    return [as_float(level) for level in levels]


def polynomial(k, x):
    return x * (k[0] + x * (k[1] + x * (k[2] + x * (k[3] + x * k[4]))))


def clamped(x, low, high):
    return min(max(x, low), high)


def solved(rows):
    """The solution of linear equations, each a list of coefficients and the right side, by Gaussian elimination."""
    rows = [list(row) for row in rows]
    for pivot, by in enumerate(rows):
        for row in rows:
            if row is not by:
                factor = row[pivot] / by[pivot]
                row[:] = [a - factor * b for a, b in zip(row, by)]
    return [row[-1] / row[index] for index, row in enumerate(rows)]


def least_squares(points, targets, weights, degree):
    """Solves the normal equations of weighted least squares."""
    powers = [[x**(a + 1) for x, _, _ in points] for a in range(degree)]
    weighted = [[weight * p for weight, p in zip(weights, row)] for row in powers]
    rows = [
        [math.fsum(a * b for a, b in zip(row, other)) for other in powers + [targets]] for row in weighted]
    return solved(rows) + [0] * (5 - degree)


def fit(points, degree):
    """Iterated least squares with larger weights where the error was larger (Lawson), which converges to the minimax
    polynomial. A point is a number and the bounds of its guess."""
    targets, weights = [(low + high) / 2 for _, low, high in points], [1.0] * len(points)
    best, least = None, math.inf
    for _ in range(60):
        k = least_squares(points, targets, weights, degree)
        guesses = [polynomial(k, x) for x, _, _ in points]
        targets = [clamped(guess, low, high) for guess, (_, low, high) in zip(guesses, points)]
        distances = [abs(guess - target) for guess, target in zip(guesses, targets)]
        if max(distances) < least:
            best, least = k, max(distances)
        if least <= 0.02:
            break
        weights = [weight * (distance + max(distances) / 1000) for weight, distance in zip(weights, distances)]
        total = math.fsum(weights)
        weights = [weight / total for weight in weights]
    return best


def rounded(x):
    """To five digits, so that rounding differences between machines do not matter."""
    return float(f"{x:.4e}")


def code_guess(bits, boundaries, reach):
    """The initial guess of Shaders/KVCacheQuantize/CodeSearch.h: a polynomial F of x > 0 such that F(x) is within one
    half of the number of positive boundaries below x, or of one more. Returns five coefficients, of x, x^2 and so on,
    and the largest number that is guessed: it stays beyond the last boundary, with a good guess, when multiplied by any
    number from 1 / (1 + reach) to 1 / (1 - reach). `boundaries` are the positive ones, in ascending order."""
    last, count = boundaries[-1], len(boundaries)
    limit = rounded(last * (1 + reach) * 1.0002)
    end = limit / (1 - reach)
    # Numbers are fitted relative to the largest. Beyond the last boundary, all have the last code or one more. The sum
    # that is rounded must not fall below 2, hence the quarter.
    points = [(boundary / end, index, index) for index, boundary in enumerate(boundaries, 1)]
    points += [((last + (end - last) * i / 32) / end, count, count + 0.75) for i in range(33)]
    coefficients = fit(points, 2 if bits <= 5 else 5)
    k = [as_float(rounded(one / end**(a + 1))) for a, one in enumerate(coefficients)]
    for i in range(1, 100001):
        x = end * i / 100000
        below, guess = bisect.bisect_left(boundaries, x), polynomial(k, x)
        if not below - 0.46 <= guess <= below + 1.46 or guess > count + 1.2:
            raise ArithmeticError(f"no guess for codes of {bits} bits is good enough")
    return k + [as_float(limit)]
