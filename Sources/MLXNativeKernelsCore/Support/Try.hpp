// Passes errors on to the caller.
#pragma once
#include <utility>

#include "MLXNativeKernels/Result.hpp"

// MNK_TRY(expression) returns the error of a Result if it has one.
// MNK_TRY(auto name, expression) also does so; otherwise it declares a variable with the Result's value.
#define MNK_TRY(...) MNK_TRY_CHOOSE(__VA_ARGS__, MNK_TRY_VALUE, MNK_TRY_CHECK)(__VA_ARGS__)

#define MNK_TRY_CHOOSE(first, second, chosen, ...) chosen
#define MNK_TRY_CHECK(expression)                                                       \
  do {                                                                                  \
    if (auto mnkResult = (expression); !mnkResult) return std::move(mnkResult).error(); \
  } while (false)
#define MNK_TRY_VALUE(variable, expression) MNK_TRY_VALUE_NUMBERED(__LINE__, variable, expression)
#define MNK_TRY_VALUE_NUMBERED(line, variable, expression) MNK_TRY_VALUE_AT(line, variable, expression)
#define MNK_TRY_VALUE_AT(line, variable, expression) MNK_TRY_VALUE_IN(mnkResult##line, variable, expression)
#define MNK_TRY_VALUE_IN(result, variable, expression) \
  auto result = (expression);                          \
  if (!result) return std::move(result).error();       \
  variable = *std::move(result)
