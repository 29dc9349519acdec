// Checks the reference arithmetic against numbers verified by hand.
#include <cmath>
#include <limits>

#include "Harness/Check.hpp"
#include "Harness/SoftFloat.hpp"

namespace mnk::test {

TEST(SoftFloat, ReadsKnownPatterns) {
  EXPECT_EQ(valueOf(DType::f16, 0x3c00), 1.0);
  EXPECT_EQ(valueOf(DType::f16, 0xc100), -2.5);
  EXPECT_EQ(valueOf(DType::f16, 0x7bff), 65504.0);
  EXPECT_EQ(valueOf(DType::f16, 0x0001), 0x1p-24);
  EXPECT_EQ(valueOf(DType::f16, 0x03ff), 1023 * 0x1p-24);
  EXPECT_EQ(valueOf(DType::f16, 0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(valueOf(DType::bf16, 0x3f80), 1.0);
  EXPECT_EQ(valueOf(DType::bf16, 0x7f7f), 0x1.fep127);
  EXPECT_EQ(valueOf(DType::f32, 0x3fc00000), 1.5);
  EXPECT_EQ(valueOf(DType::f32, 1), 0x1p-149);
  EXPECT(std::signbit(valueOf(DType::f16, 0x8000)));
  EXPECT(isNaN(DType::f16, 0x7c01));
  EXPECT(!isNaN(DType::f16, 0x7c00));
  EXPECT(isNaN(DType::bf16, 0xffff));
}

TEST(SoftFloat, RoundsToNearestTiesToEven) {
  EXPECT_EQ(nearestBits(DType::f16, 1 + 0x1p-11), 0x3c00u);            // halfway, down to even
  EXPECT_EQ(nearestBits(DType::f16, 1 + 3 * 0x1p-11), 0x3c02u);        // halfway, up to even
  EXPECT_EQ(nearestBits(DType::f16, 1 + 0x1p-11 + 0x1p-40), 0x3c01u);  // just above halfway
  EXPECT_EQ(nearestBits(DType::f16, 2 - 0x1p-12), 0x4000u);            // carries into the exponent
  EXPECT_EQ(nearestBits(DType::f16, 65519.99), 0x7bffu);
  EXPECT_EQ(nearestBits(DType::f16, 65520), 0x7c00u);
  EXPECT_EQ(nearestBits(DType::f16, -1e300), 0xfc00u);
  EXPECT_EQ(nearestBits(DType::f16, 0x1p-25), 0u);
  EXPECT_EQ(nearestBits(DType::f16, 0x1p-25 + 0x1p-60), 1u);
  EXPECT_EQ(nearestBits(DType::f16, -0x1p-60), 0x8000u);
  EXPECT_EQ(nearestBits(DType::f16, 0x1p-14 - 0x1p-26), 0x0400u);  // the largest subnormal rounds up to normal
  EXPECT_EQ(nearestBits(DType::bf16, 1 + 0x1p-8), 0x3f80u);
  EXPECT_EQ(nearestBits(DType::bf16, 0x1.ffp127), 0x7f80u);
  EXPECT_EQ(nearestBits(DType::bf16, 0x1p-134), 0u);
  EXPECT_EQ(nearestBits(DType::f32, 1 + 0x1p-24), 0x3f800000u);
  EXPECT_EQ(nearestBits(DType::f32, -0.0), 0x80000000u);
  EXPECT(isNaN(DType::f16, nearestBits(DType::f16, std::nan(""))));
}

TEST(SoftFloat, EveryNumberRoundTripsThroughDouble) {
  for (DType dtype : {DType::f16, DType::bf16}) {
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      const uint64_t again = nearestBits(dtype, valueOf(dtype, bits));
      if (isNaN(dtype, bits) ? isNaN(dtype, again) : again == bits) continue;
      EXPECT_EQ(again, bits);
      return;
    }
  }
}

}  // namespace mnk::test
