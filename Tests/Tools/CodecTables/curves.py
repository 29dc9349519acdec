"""Codebooks of the `turbo` codec whose levels attention computes instead of looking them up: factor * t * ((t * t + a)^2
+ b) with t = (2 * code + 1) / 2^bits - 1, which has terms of degree 1, 3 and 5."""
import itertools
import math
import struct

from codebooks import lloyd_max_levels, solved


def as_half(x):
    """The nearest half."""
    return struct.unpack("e", struct.pack("e", x))[0]


def halves_near(x):
    """The nearest half, and four on each side."""
    number, = struct.unpack("H", struct.pack("e", x))
    return [struct.unpack("e", struct.pack("H", number + step))[0] for step in range(-4, 5)]


def with_digits(x, digits):
    """The nearest number with this many binary digits."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)


def arguments(bits):
    """t for the positive half of the codes."""
    return [(2 * index + 1) / (1 << bits) for index in range(1 << (bits - 1))]


def half_level(t, a, b):
    """What halves give for a level, but for the factor: two fused multiply-adds and a product, each rounded once. They
    are exact in Python's floats, so that only the rounding to halves remains."""
    u = as_half(t * t + a)
    return as_half(as_half(u * u + b) * t)


def curve_levels(bits, a, b, factor):
    """The positive half of a codebook. The factor is so short that floats hold the products exactly."""
    return [factor * half_level(t, a, b) for t in arguments(bits)]


def density(x):
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cells_of(levels):
    """The ends, probability and first moment of the cells of the normal distribution."""
    ends = [0] + [(a + b) / 2 for a, b in zip(levels, levels[1:])] + [math.inf]
    return [
        (low, high, (math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2))) / 2, density(low) - density(high))
        for low, high in zip(ends, ends[1:])]


def distortion(levels):
    """The mean squared error for the normal distribution."""
    cells = zip(levels, cells_of(levels))
    return 1 - 2 * math.fsum(level * (2 * moment - level * mass) for level, (_, _, mass, moment) in cells)


def sum_of_products(*lists):
    return math.fsum(map(math.prod, zip(*lists)))


def fitted(basis, k):
    """The coefficients of basis functions, given by their values for each level, whose sum has the least distortion, by
    Newton's method. It starts from coefficients `k` that are close."""
    for _ in range(50):
        levels = [sum_of_products(k, values) for values in zip(*basis)]
        cells = cells_of(levels)
        slopes = [level * mass - moment for level, (_, _, mass, moment) in zip(levels, cells)]

        def change(steps):
            """How the slopes change if levels change by `steps`. The ends of cells move with the levels."""
            changes = [mass * step for step, (_, _, mass, _) in zip(steps, cells)]
            for i, (_, end, _, _) in enumerate(cells[:-1]):
                moved = density(end) * (end - levels[i]) * (steps[i] + steps[i + 1]) / 2
                changes[i] -= moved
                changes[i + 1] -= moved
            return changes

        changes = [change(one) for one in basis]
        steps = solved([[sum_of_products(one, other) for other in changes + [slopes]] for one in basis])
        k = [coefficient - step for coefficient, step in zip(k, steps)]
        if max(map(abs, steps)) < 1e-10:
            return k
    raise ArithmeticError("Newton's method does not converge for a curve")


def turbo_curve(bits):
    """The a, b and factor with the least distortion, where a and b are halves and factors have 13 binary digits."""
    t = arguments(bits)
    powers = [[x**power for x in t] for power in (1, 3, 5)]
    best = lloyd_max_levels(bits)
    masses = [mass for _, _, mass, _ in cells_of(best)]
    start = solved([[sum_of_products(one, other, masses) for other in powers + [best]] for one in powers])
    first, third, fifth = fitted(powers, start)
    exact_a = third / fifth / 2
    exact_b = first / fifth - exact_a * exact_a
    curves = []
    for a, b in itertools.product(halves_near(exact_a), halves_near(exact_b)):
        factor = with_digits(fitted([[half_level(x, a, b) for x in t]], [fifth])[0], 13)
        curves.append((distortion(curve_levels(bits, a, b, factor)), a, b, factor))
    _, *curve = min(curves)
    levels = curve_levels(bits, *curve)
    if levels != sorted(set(levels)):
        raise ArithmeticError(f"the levels of {bits} bits do not rise")
    return curve
