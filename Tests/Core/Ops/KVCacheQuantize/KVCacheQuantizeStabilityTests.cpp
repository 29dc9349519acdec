// What is stored for a vector depends on the vector alone: not on what travels with it, and not on whether a processor
// flushes subnormal numbers.
#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/RawBytes.hpp"
#include "Harness/Seeded.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"
#include "MLXNativeKernels/HostDevice.hpp"

namespace mnk::test {

namespace {

constexpr uint64_t kTokens = 40;

Tensor tensorOf(const std::shared_ptr<Device>& device, const std::vector<float>& numbers,
                std::initializer_list<uint64_t> extents) {
  const Tensor tensor = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make(extents))));
  REQUIRE(tensor.write(rawBytes(numbers)));
  return tensor;
}

float randomFloat(Seeded& random, uint32_t exponents) {
  const uint32_t bits =
      (static_cast<uint32_t>(random.next()) & 0x807fffffu) | static_cast<uint32_t>(random.below(exponents)) << 23;
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}

// Vectors where subnormal numbers arise unless they are kept away: of every size, of small sizes alone, and of small
// ones beside two large ones that cancel in half of all sums.
std::vector<float> vectorsOfEverySize(Seeded& random, uint64_t headDim) {
  std::vector<float> numbers(kTokens * headDim);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t kind = i / headDim % 3;
    numbers[i] = randomFloat(random, kind == 0 ? 255 : kind == 1 ? 12 : 60);
    if (kind == 2 && i % headDim < 2) numbers[i] = 1;
  }
  return numbers;
}

QuantizedKVPlane emptyPlane(const std::shared_ptr<Device>& device, const KVCodec& codec, uint64_t headDim) {
  return REQUIRE(QuantizedKVPlane::zeros(device, codec, 1, headDim, kTokens));
}

std::vector<std::byte> bytesOf(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.byteCount());
  REQUIRE(tensor.read(bytes));
  return bytes;
}

// Codes and scales of the keys, one after the other.
std::vector<std::byte> storedKeys(const std::shared_ptr<Device>& device, const KVCacheQuantize& op) {
  CommandEncoder encoder(device, "keys");
  REQUIRE(encoder.encode(op));
  REQUIRE(REQUIRE(encoder.commit()).wait());
  std::vector<std::byte> bytes = bytesOf(op.into.keys.codes);
  const std::vector<std::byte> scales = bytesOf(op.into.keys.scales);
  bytes.insert(bytes.end(), scales.begin(), scales.end());
  return bytes;
}

// While it lives, this thread and those that it starts flush subnormal numbers to zero.
class Flushing {
 public:
  explicit Flushing(bool flushes) : before_(control()) {
    if (flushes) setControl(before_ | kFlush);
  }
  ~Flushing() { setControl(before_); }

 private:
#if defined(__x86_64__)
  static constexpr uint64_t kFlush = 0x8040;  // results and operands
  static uint64_t control() {
    return _mm_getcsr();
  }
  static void setControl(uint64_t word) {
    _mm_setcsr(static_cast<uint32_t>(word));
  }
#elif defined(__aarch64__)
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t control() {
    uint64_t word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void setControl(uint64_t word) {
    asm volatile("msr fpcr, %0" : : "r"(word));
  }
#endif
  uint64_t before_;
};

}  // namespace

TEST(KVCacheQuantizeStability, KeysDoNotDependOnTheValuesBesideThem) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    Seeded random(3);
    const std::array<std::pair<KVCodec, std::pair<uint64_t, uint64_t>>, 12> cases = {
        {{{.bits = 4}, {64, 512}},
         {{.bits = 5}, {128, 256}},
         {{.bits = 3}, {80, 192}},
         {{.bits = 5}, {80, 512}},
         {{.bits = 4}, {96, 512}},
         {{.bits = 7}, {112, 512}},
         {{.bits = 6}, {192, 512}},
         {{.name = KVCodec::Name::mlx1}, {128, 512}},
         {{.name = KVCodec::Name::mlx1}, {512, 4096}},
         {{.name = KVCodec::Name::mlx1}, {256, 1024}},
         {{.name = KVCodec::Name::mlx1Unrotated, .bits = 8}, {256, 512}},
         {{.name = KVCodec::Name::mlx1Affine4}, {256, 512}}}};
    for (const auto& [codec, headDims] : cases) {
      const auto [headDim, valueHeadDim] = headDims;
      const Context context(fmt::format("{} at {} beside {}", codec.text(), headDim, valueHeadDim));
      std::vector<float> numbers(kTokens * headDim);
      for (float& number : numbers) number = static_cast<float>(static_cast<int32_t>(random.next())) * 0x1p-30f;
      KVCacheQuantize op{.keys = tensorOf(device, numbers, {kTokens, 1, headDim}),
                         .into = {.keys = emptyPlane(device, codec, headDim)}};
      const auto alone = storedKeys(device, op);
      op.values = tensorOf(device, std::vector<float>(kTokens * valueHeadDim, 1.5f), {kTokens, 1, valueHeadDim});
      op.into = {.keys = emptyPlane(device, codec, headDim), .values = emptyPlane(device, codec, valueHeadDim)};
      EXPECT(storedKeys(device, op) == alone);
    }
  });
}

TEST(KVCacheQuantizeStability, FlushingDoesNotShow) {
  for (const KVCodec& codec :
       {KVCodec{.bits = 4}, KVCodec{.bits = 7}, KVCodec{.name = KVCodec::Name::mlx1}, KVCodec{KVCodec::Name::mlx1, 8},
        KVCodec{KVCodec::Name::mlx1Unrotated, 8}, KVCodec{KVCodec::Name::mlx1Affine4, 4}}) {
    for (uint64_t headDim : {80, 112, 128, 192, 256, 512}) {
      for (bool hasFactors : {false, true}) {
        if (!codec.canQuantize(headDim) || (hasFactors && codec.name != KVCodec::Name::turbo)) continue;
        const Context context(fmt::format("{} at {}{}", codec.text(), headDim, hasFactors ? ", with factors" : ""));
        std::vector<std::vector<std::byte>> stored;
        for (bool flushes : {false, true}) {
          const Flushing flushing(flushes);
          // Workers are started with the device and do as this thread does.
          const auto device = REQUIRE(host::makeDevice({.workers = 2}));
          Seeded random(headDim);
          KVCacheQuantize op{.into = {.keys = emptyPlane(device, codec, headDim)}};
          op.keys = tensorOf(device, vectorsOfEverySize(random, headDim), {kTokens, 1, headDim});
          if (hasFactors) {
            std::vector<float> means(headDim), factors(headDim);
            for (float& mean : means) mean = randomFloat(random, 3);
            for (float& factor : factors) factor = random.below(2) == 0 ? 0x1p110f : 0x1p112f;
            op.into.keys.means = tensorOf(device, means, {1, headDim});
            op.into.keys.channelScales = tensorOf(device, factors, {1, headDim});
          }
          stored.push_back(storedKeys(device, op));
        }
        EXPECT(stored[0] == stored[1]);
      }
    }
  }
}

}  // namespace mnk::test
