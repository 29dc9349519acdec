// Made by .ci/unify.
// clang-format off
#include "Harness/Check.cpp"
#include "Harness/Close.cpp"
#include "Harness/DeclaredBytes.cpp"
#include "Harness/EveryDevice.cpp"
#include "Harness/FakeDevice.cpp"
#include "Harness/GuardedTensor.cpp"
#include "Harness/PlanBuffer.cpp"
#include "Harness/Runner.cpp"
#include "Harness/ScriptFolder.cpp"
#include "Harness/Seeded.cpp"
#include "Harness/SoftFloat.cpp"
