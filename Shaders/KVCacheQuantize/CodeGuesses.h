// Made by .ci/make-tables: the polynomials that codes are guessed by, see CodeSearch.h. Rows of six: the coefficients
// of x, x * |x| and so on, and the largest |x|. Up to 5 bits two coefficients are enough.
#pragma once
#include "../Common/MetalCompat.h"

// clang-format off
// For 2 to 8 bits.
constant float kTurboGuesses[42] = {
    1.1353f, -0.11536f, 0.0f, 0.0f, 0.0f, 1.2174f,
    2.28f, -0.34111f, 0.0f, 0.0f, 0.0f, 2.273f,
    4.2948f, -0.58865f, 0.0f, 0.0f, 0.0f, 3.1697f,
    8.112f, -1.0259f, 0.0f, 0.0f, 0.0f, 3.7645f,
    14.357f, 1.1476f, -1.8616f, 0.41753f, -0.031127f, 4.1826f,
    24.436f, 9.6745f, -8.3469f, 1.9798f, -0.1576f, 3.9082f,
    46.911f, 21.261f, -17.766f, 4.2194f, -0.33824f, 4.2736f,
};

// For 4, 5, 6 and 8 bits.
constant float kMlx1Guesses[24] = {
    4.2005f, -0.52652f, 0.0f, 0.0f, 0.0f, 2.4013f,
    8.2626f, -1.0685f, 0.0f, 0.0f, 0.0f, 2.9765f,
    16.088f, -0.082539f, -1.4788f, 0.36142f, -0.028604f, 3.4459f,
    38.543f, -4.8575f, 4.2034f, -1.3501f, 0.11982f, 4.8755f,
};
// clang-format on
