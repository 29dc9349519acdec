// A table of cosines and sines, and MultiRoPE, which has none, give the same bits.
#include <cstring>

#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/MultiRoPE.hpp"
#include "MultiRoPE/MultiRoPETypes.h"

namespace mnk::test {

namespace {

struct TableParams {
  uint32_t pairs, heads, headsPerGroup;
  int32_t firstPosition;
};

// The frequencies that a plan of MultiRoPE carries.
std::vector<std::byte> frequenciesOf(const MultiRoPE& op) {
  const Plan planned = REQUIRE(plan(op));
  for (const InlineBytes& inlined : planned.dispatches.at(0).inlines) {
    if (inlined.index == kMultiRoPEFrequencies) return inlined.bytes;
  }
  return {};
}

}  // namespace

TEST(RotaryTable, AgreesWithMultiRoPEBitForBit) {
  onEveryHost([](const std::shared_ptr<Device>& device) {
    for (const int32_t firstPosition : {0, -70, 131071, 1000000, INT32_MAX - 70}) {
      const Context context(fmt::format("from position {}", firstPosition));
      constexpr uint64_t tokens = 70, heads = 5, headDim = 64;
      Seeded random;
      const Shape shape = REQUIRE(Shape::make({tokens, heads, headDim}));
      const Tensor from = REQUIRE(Tensor::zeros(device, DType::f16, shape));
      const Tensor direct = REQUIRE(Tensor::zeros(device, DType::f16, shape));
      std::vector<uint16_t> elements(tokens * heads * headDim), byTable(elements.size()), got(elements.size());
      for (uint16_t& bits : elements)
        bits = static_cast<uint16_t>(0x3000 + random.below(0x1000) + (random.below(2) << 15));
      REQUIRE(from.write(bytesOf(elements)));

      const MultiRoPE op{
          .queries = from, .rotatedQueries = direct, .positions = firstPosition, .rotary = {.base = 1e6}};
      CommandEncoder encoder(device);
      REQUIRE(encoder.encode(op));
      REQUIRE(REQUIRE(encoder.commit()).wait());
      REQUIRE(direct.read(bytesOf(got)));

      std::vector<TableParams> params{{headDim / 2, heads, 2, firstPosition}};
      std::vector<std::byte> frequencies = frequenciesOf(op);
      std::vector<float> table(tokens * headDim);
      REQUIRE(runOn(device, {.function = "rotaryTable",
                             .grid = threads({headDim / 2, tokens, 1}, {32, 1, 1}),
                             .buffers = {bytesOf(params), frequencies, bytesOf(table)}}));
      REQUIRE(runOn(device, {.function = "rotateByTable",
                             .grid = threads({headDim / 8, 3, tokens}, {8, 3, 1}),
                             .buffers = {bytesOf(params), bytesOf(table), bytesOf(elements), bytesOf(byTable)}}));
      expectAll(got, byTable, "element");
    }
  });
}

}  // namespace mnk::test
