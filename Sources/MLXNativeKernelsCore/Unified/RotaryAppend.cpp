// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Ops/RotaryAppend/RepeatedRotaryAppend.cpp"
#include "Ops/RotaryAppend/RotaryAppend.cpp"
#pragma clang attribute pop
