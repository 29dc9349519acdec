// Made by .ci/make-tables: the polynomials that codes are guessed by, see CodeSearch.h. Rows of six: the coefficients
// of x, x * |x| and so on, and the largest |x|. Up to 5 bits two coefficients are enough.
#pragma once
#include "../Common/MetalCompat.h"

// clang-format off
// For 2 to 8 bits.
constant float kTurboGuesses[42] = {
    1.1353f, -0.11536f, 0.0f, 0.0f, 0.0f, 1.2174f,
    2.281f, -0.34148f, 0.0f, 0.0f, 0.0f, 2.2728f,
    4.2948f, -0.58865f, 0.0f, 0.0f, 0.0f, 3.1697f,
    8.109f, -1.0263f, 0.0f, 0.0f, 0.0f, 3.7504f,
    14.846f, 0.4368f, -1.3599f, 0.27664f, -0.018108f, 4.1916f,
    29.623f, 0.59482f, -2.528f, 0.50365f, -0.03136f, 4.6765f,
    59.733f, -0.098327f, -4.3006f, 0.83483f, -0.048893f, 5.1872f,
};

// For 4, 5, 6 and 8 bits.
constant float kMlx1Guesses[24] = {
    4.2005f, -0.52652f, 0.0f, 0.0f, 0.0f, 2.4013f,
    8.2626f, -1.0685f, 0.0f, 0.0f, 0.0f, 2.9765f,
    16.088f, -0.082539f, -1.4788f, 0.36142f, -0.028604f, 3.4459f,
    38.543f, -4.8575f, 4.2034f, -1.3501f, 0.11982f, 4.8755f,
};
// clang-format on
