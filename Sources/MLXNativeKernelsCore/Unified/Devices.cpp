// Made by .ci/unify.
// clang-format off
#include "Devices/DefaultDevice.cpp"
#include "Devices/HostFactory.cpp"
#include "Devices/WithoutMetal.cpp"
