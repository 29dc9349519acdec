// Element types under the names that the host gives them.
#pragma once
#include "Words.h"

typedef float f32;
typedef half f16;
typedef bfloat bf16;
