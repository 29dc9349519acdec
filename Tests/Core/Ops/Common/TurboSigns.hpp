#pragma once
#include <cstdint>

namespace mnk::test {

constexpr uint64_t kTurboHeadDims[] = {32, 64, 80, 96, 112, 128, 192, 256, 512};

}  // namespace mnk::test
