// The codecs against facts that were not made here: published bytes of mlx1, bytes of its variants that another program
// computed from their published formulas, and definitions written out.
#include <bit>
#include <cmath>
#include <string>

#include "Harness/Check.hpp"
#include "Harness/EveryDevice.hpp"
#include "Harness/SoftFloat.hpp"
#include "KVCodecReference.hpp"
#include "StoredVector.hpp"
#include "Support/Crc32.hpp"

namespace mnk::test {

namespace {

struct Golden {
  uint64_t headDim;
  uint32_t bits;
  uint32_t seed;
  std::vector<uint64_t> norms;  // f32
  std::string first;            // 16 bytes
  std::string last;             // 8 bytes
  uint32_t crc;
  KVCodec::Name name = KVCodec::Name::mlx1;

  std::string text() const { return fmt::format("{} of {} bits, head dim {}", mnk::name(name), bits, headDim); }
};

// No element of these is nearer than 1e-4 to a boundary, so that rounding cannot change a byte.
constexpr KVCodec::Name kFlat = KVCodec::Name::mlx1Unrotated, kEven = KVCodec::Name::mlx1Affine4;
const std::vector<Golden> kGoldenVectors = {
    {256, 4, 19, {0x41969708}, "a9aba5d1b6c2555d7bc76c96654abb64", "a86d69b6bca84773", 0x70913513},
    {512, 4, 23, {0x3f9647bc, 0x3f8d2377}, "5857586e889a8b46db6b991744b7cadd", "5cc1578b626d798a", 0x9b6585b1},
    {256, 5, 44, {0x41929750}, "190a0d18110703100d030c161b180810", "110c0a121a0c0708", 0x826df94c},
    {256, 6, 28, {0x4196f5f0}, "1b1a2131221d362c24351c2c312d120e", "310f08263700152e", 0xeb297afe},
    {256, 8, 51, {0x41924047}, "a07f7d5c524a588b7780a167466e238f", "7c614ca15e779d55", 0x10fa3725},
    {512, 5, 36, {0x3f98464d, 0x3f959f37}, "03070c190e180f0a150a0d0c130c060c", "1615100e0f120403", 0x88103551},
    {512, 6, 4, {0x3f8b5a57, 0x3f9a37ec}, "29191728261e1d12081f21210d1a2c09", "1017132435372b12", 0xd3efb30e},
    {512, 8, 18, {0x3f8efef9, 0x3f97a036}, "694bbe654d768e8b7f8c1b838533a373", "5352ac929452824d", 0xd1088e5c},
    {128, 4, 49, {0x41478c5f}, "bcc97c644d6babaaa2775d53a8b15463", "c4c933fc59b5d889", 0x4364fb06},
    {64, 4, 59, {0x4113d723}, "2858b3b88459334816d296742c69b86a", "c7829942d3d7f767", 0xc14643a0},
    {256, 5, 2, {0x418e81b3}, "071507171704090f1510161a0c0c1814", "0909170b10160517", 0xbd8001be, kFlat},
    {256, 6, 4, {0x41910198}, "172e0b1b143420262b262b1c0a1d1a22", "0e1228090c110f32", 0x145abc40, kFlat},
    {256, 8, 7, {0x419be3e2}, "728768b952766b46bb8bae9b5fac5c5c", "a6899c7654477360", 0x267d0532, kFlat},
    {512, 5, 3, {0x3f96b8f9, 0x3f96441e}, "0c0d090b0e060b16160d15091518170e", "0819100e19060c0f", 0xd1d0747e, kFlat},
    {512, 6, 7, {0x3f9be3e2, 0x3f94f65d}, "1a2316350e1b170a3525322b12311111", "1a150b3411340a2f", 0xdf303e9d, kFlat},
    {512, 8, 7, {0x3f9be3e2, 0x3f94f65d}, "728768b952766b46bb8bae9b5fac5c5c", "726649b65ab743a7", 0x17786e0a, kFlat},
    {256, 4, 1, {0x40d43574}, "8a8885688785ab879a659bc69999868b", "564768885a563892", 0xe1b7b2ff, kEven},
    {512, 4, 1, {0x4120c34a}, "68878767a757da6aba762b989b7a886a", "5819459679b584a3", 0x7db067b0, kEven},
};

std::vector<float> input(const Golden& golden) {
  std::vector<float> vector;
  for (uint32_t j = 0; j < golden.headDim; ++j) {
    uint32_t h = (j + 1) * 2654435761u + golden.seed * 40503u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    vector.push_back((static_cast<float>(h >> 8) - 0x1p23f) / 0x1p22f);
  }
  return vector;
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

}  // namespace

// KVCacheQuantize.FollowsTheReference shows that the reference makes the same.
TEST(KVCacheQuantizeGolden, MakesTheGoldenBytes) {
  onEveryDevice([](const std::shared_ptr<Device>& device) {
    for (const Golden& golden : kGoldenVectors) {
      const Context context(golden.text());
      const KVCodec codec{.name = golden.name, .bits = golden.bits};
      const StoredVector got = stored(device, {.codec = codec}, {input(golden)}).vectors[0];
      EXPECT_EQ(got.bytes.size(), golden.headDim / (golden.bits == 4 ? 2 : 1));
      EXPECT_EQ(hex(std::span(got.bytes).first(16)), golden.first);
      EXPECT_EQ(hex(std::span(got.bytes).last(8)), golden.last);
      Crc32 sum;
      sum.add(got.bytes);
      EXPECT_EQ(sum.value(), golden.crc);
      EXPECT_EQ(got.scales.size(), golden.norms.size());
      for (size_t index = 0; index < golden.norms.size(); ++index) {
        // They were summed in f32 one by one.
        const double off = valueOf(DType::f32, got.scales.at(index)) / valueOf(DType::f32, golden.norms[index]) - 1;
        if (std::abs(off) > 1e-6) fail(__FILE__, __LINE__, fmt::format("norm {} is off by {}", index, off));
      }
    }
  });
}

TEST(KVCodecReference, PacksAsTheHeaderSays) {
  std::vector<uint32_t> codes(32, 0);
  const auto bytesOf = [&](KVCodec::Name name, uint32_t bits) {
    return hex(packed({.name = name, .bits = bits}, codes)).substr(0, 64);
  };
  codes[0] = 0x15, codes[1] = 0x0a, codes[9] = 0x1f;
  EXPECT_EQ(bytesOf(KVCodec::Name::turbo, 5), "a5000000f0000000000000000000000001020000");
  codes[0] = 5, codes[1] = 2, codes[9] = 7;
  EXPECT_EQ(bytesOf(KVCodec::Name::turbo, 3), "09000c000000000001020000");
  codes[0] = 0x41, codes[1] = 0x3f, codes[9] = 0x7f;
  EXPECT_EQ(bytesOf(KVCodec::Name::turbo, 7), "f1000000f000000000000000000000000c000c000000000001020000");
  codes[0] = 0x15, codes[1] = 0x0a, codes[9] = 0x1f;
  EXPECT_EQ(bytesOf(KVCodec::Name::mlx1, 5), "150a000000000000001f00000000000000000000000000000000000000000000");

  Seeded random;
  for (uint32_t bits = 2; bits <= 8; ++bits) {
    for (uint32_t& code : codes) code = static_cast<uint32_t>(random.below(1u << bits));
    const KVCodec codec{.bits = bits};
    const auto bytes = packed(codec, codes);
    EXPECT_EQ(bytes.size(), bits * 4);
    EXPECT(unpacked(codec, 32, bytes) == codes);
  }
}

// By definition, element j is the sum of all x_i, with a minus where i and j share an odd number of binary digits. For
// m blocks this is of i and j within them, times an element of the reflection I - 2 J / m across blocks.
TEST(KVCodecReference, TurnsByTheDefinition) {
  Seeded random;
  for (const auto& [length, block] : {std::pair<size_t, size_t>{64, 64}, {80, 16}, {96, 32}, {112, 16}, {192, 64}}) {
    const Context context(fmt::format("{} elements", length));
    std::vector<double> x(length);
    for (double& element : x) element = static_cast<double>(random.below(1000)) - 500;
    const std::vector<double> got = hadamard(x);
    const double blocks = static_cast<double>(length / block);
    for (size_t j = 0; j < length; ++j) {
      double expected = 0;
      for (size_t i = 0; i < length; ++i) {
        const double sign = std::popcount(i % block & j % block) % 2 == 0 ? 1 : -1;
        const double across = length == block ? 1 : (i / block == j / block) - 2 / blocks;
        expected += sign * across * std::sqrt(blocks) * x[i];
      }
      EXPECT(std::abs(got[j] - expected) <= (length == block ? 0 : 1e-9));
    }
  }
}

}  // namespace mnk::test
