// Made by .ci/unify.
// clang-format off
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "Devices/DefaultDevice.cpp"
#include "Devices/HostFactory.cpp"
#include "Devices/WithoutMetal.cpp"
#pragma clang attribute pop
