#include "Ops/Common/TurboSigns.hpp"

namespace mnk::test {

namespace {

constexpr uint32_t kSigns32[] = {0xaec06e38};
constexpr uint32_t kSigns64[] = {0xe1a0ea91, 0xfc637a4b};
constexpr uint32_t kSigns128[] = {0xcda3bc0b, 0x3d25130b, 0x58a1db54, 0x36b0908a};
constexpr uint32_t kSigns256[] = {0x5d358a1e, 0xa63a862b, 0xf84700c6, 0x3fd6c6d4,
                                  0xa247fb60, 0x9c7e0c3d, 0x2c4ccdc2, 0xd6ffad8f};
constexpr uint32_t kSigns512[] = {0x393744b0, 0x2b038bd6, 0xe39218a1, 0x9f083c2f, 0xe40d5d89, 0x0b5a1618,
                                  0x5b9ce980, 0xe2820e79, 0x356e0ef7, 0xe646445a, 0x21eb2a87, 0x58913343,
                                  0xc2398233, 0xaea5ba07, 0x172dc8ab, 0x82bb8614};
constexpr uint32_t kSigns80[] = {0x54ff150c, 0x37dd8095, 0x9ecfb9b4};
constexpr uint32_t kSigns96[] = {0x0faf1197, 0xc49d2573, 0x41b18a26};
constexpr uint32_t kSigns112[] = {0x903eb3e2, 0x8f20b6af, 0x2a762eec, 0x0b1db2d9};
constexpr uint32_t kSigns192[] = {0x4fbfb625, 0xc5dd0e3d, 0xadf64b62, 0xf17f36bb, 0x450f85a9, 0x9ac219e9};

}  // namespace

std::span<const uint32_t> turboSignWords(uint64_t headDim) {
  switch (headDim) {
    case 32:
      return kSigns32;
    case 64:
      return kSigns64;
    case 80:
      return kSigns80;
    case 96:
      return kSigns96;
    case 112:
      return kSigns112;
    case 128:
      return kSigns128;
    case 192:
      return kSigns192;
    case 256:
      return kSigns256;
    default:
      return kSigns512;
  }
}

double turboReach(uint32_t bits) {
  constexpr double kReach[] = {0.12, 0.15, 0.16, 0.13, 0.10, 0.11, 0.14};  // from 2 bits on
  return kReach[bits - 2];
}

}  // namespace mnk::test
