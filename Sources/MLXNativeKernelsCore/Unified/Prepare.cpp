// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Prepare/Prepare.cpp"
#include "Prepare/TuningFile.cpp"
#pragma clang attribute pop
