#include "HadamardTarget.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "Numbers.hpp"
#include "OpCase.hpp"
#include "Ops/HadamardRules.hpp"
#include "Reference/KVCodecReference.hpp"
#include "Reference/KVCodecTables.hpp"
#include "Reference/SoftFloat.hpp"
#include "TensorAttacks.hpp"

namespace mnk::fuzz {

namespace {

// A Hadamard in numbers.
struct Words {
  bool isNull = false;
  std::optional<TensorWords> from, into;
  mnk_hadamard numbers{};  // everything but the tensors
  uint8_t tail = 0;

  uint64_t length() const { return from->shape.empty() ? 0 : from->shape.back(); }
};

bool isFloat(const TensorWords& tensor) {
  return tensor.dtype == MNK_F32 || tensor.dtype == MNK_F16 || tensor.dtype == MNK_BF16;
}

Words valid(Seeded& random, Bank bank) {
  const auto real = [&] { return oneOf(random, {MNK_F32, MNK_F16, MNK_BF16}); };
  for (;;) {
    Words words;
    mnk_hadamard& n = words.numbers;
    n.size = sizeof n + (coin(random, 1, 16) ? random.below(sizeof n + 1) : 0);
    n.has_signs = coin(random, 2, 3);
    n.signs = coin(random, 1, 2) ? MNK_TURBO : MNK_MLX1;
    n.is_inverse = coin(random, 1, 2);
    const bool isTurbo = n.has_signs && n.signs == MNK_TURBO;
    const uint64_t length =
        isTurbo ? uint64_t{32} << random.below(5) : uint64_t{4} << random.below(coin(random, 1, 8) ? 11 : 7);
    std::vector<uint64_t> shape;
    for (uint64_t axes = random.below(4); axes > 0; --axes)
      shape.push_back(random.below(16) == 0 ? 0 : 1 + random.below(4));
    shape.push_back(length);
    // Results of the first call are not what the second one reads.
    const uint32_t arena = bank == Bank::first ? 0 : 2;
    words.from = TensorWords{.dtype = real(), .shape = shape, .arena = arena};
    if (coin(random, 1, 2)) words.into = TensorWords{.dtype = real(), .shape = shape, .arena = arena + 1};
    bool isPlaced = place(*words.from, random);
    if (words.into) isPlaced = place(*words.into, random) && isPlaced;
    if (words.into && coin(random, 1, 8)) words.into = words.from;
    if (isPlaced) return words;
  }
}

void attack(Words& words, Seeded& random) {
  if (!words.from) return;
  TensorWords& tensor = words.into && coin(random, 1, 2) ? *words.into : *words.from;
  mnk_hadamard& n = words.numbers;
  switch (random.below(13)) {
    case 0:
      words.isNull = true;
      return;
    case 1:
      words.from.reset();
      return;
    case 2:
      n.size = edge(random, {sizeof n, sizeof n, sizeof n + 8, 2 * sizeof n});
      words.tail = coin(random, 1, 2) ? 0 : static_cast<uint8_t>(random.next());
      return;
    case 3:
      n.has_signs = coin(random, 3, 4);
      n.signs = test::number<mnk_kv_codec_name>(static_cast<uint32_t>(random.below(4)));
      return;
    case 4:
      return changeTheRank(tensor, random);
    case 5:
      return changeTheDType(tensor, random);
    case 6:
      return moveAnExtent(tensor, random);
    case 7:
      if (!tensor.shape.empty()) tensor.shape.back() = oneOf<uint64_t>(random, {2, 4, 96, 1024, 4096, 8192});
      return;
    case 8:
      if (words.into) words.into->shape = words.from->shape;
      return;
    case 9:
      // So many that no memory could hold them but for an axis of 0.
      words.from->shape = {uint64_t{1} << 31, 0, 64};
      if (words.into) words.into->shape = words.from->shape;
      return;
    case 10:
      tensor.device = 1;
      return;
    default:
      if (words.into) moveBeside(*words.into, *words.from, random);
  }
}

// Whether results take the place of what they are made of, with or without saying so.
bool isInPlace(const Words& words) {
  return !words.into || (words.into->dtype == words.from->dtype && words.into->arena == words.from->arena &&
                         words.into->offset == words.from->offset);
}

// The contract of Hadamard.hpp and mnk_kv_quantize.h: what the error must say, or nothing.
std::string refusalOf(const Words& words) {
  const mnk_hadamard& n = words.numbers;
  if (words.isNull) return "mnk_hadamard is missing";
  if (n.size < sizeof n || n.size > 2 * sizeof n || (n.size > sizeof n && words.tail != 0)) {
    return "mnk_hadamard has the wrong size";
  }
  if (!words.from) return "from is missing";
  if (n.has_signs && static_cast<uint32_t>(n.signs) > 1) return "the number is not a codec";
  if (!isFloat(*words.from) || (words.into && !isFloat(*words.into))) return "the tensors are not of floats";
  const uint64_t length = words.length();
  if (!std::has_single_bit(length) || length < 4 || length > 4096) return "vectors have no length that can be turned";
  if (n.has_signs && n.signs == MNK_TURBO && (length < 32 || length > 512)) {
    return "the codec has no signs for this length";
  }
  if (!words.into) return {};
  if (words.into->shape != words.from->shape) return "the target has another shape";
  const bool isPartial = !isInPlace(words) && words.into->overlaps(*words.from);
  return isPartial ? "source and target overlap without being the same" : "";
}

class HadamardCall final : public OpCall {
 public:
  HadamardCall(World& world, Seeded& random, Words words) : words_(std::move(words)) {
    std::memset(storage_.tail, words_.tail, sizeof storage_.tail);
    storage_.op = words_.numbers;
    storage_.op.from = words_.from ? world.make(*words_.from, random) : nullptr;
    storage_.op.into = words_.into ? world.make(*words_.into, random) : nullptr;
    if (words_.from && isFloat(*words_.from)) fill(world, random, *words_.from);
    refusal_ = refusalOf(words_);
  }

  std::string text() const override {
    const mnk_hadamard& n = words_.numbers;
    if (words_.isNull) return "Hadamard: a NULL descriptor";
    return fmt::format("Hadamard (size {}, tail {}): from {}, into {}, signs {}{}", n.size, words_.tail,
                       words_.from ? words_.from->text() : "NULL", words_.into ? words_.into->text() : "NULL",
                       n.has_signs ? fmt::format("{}", static_cast<uint32_t>(n.signs)) : "none",
                       n.is_inverse ? ", inverse" : "");
  }
  std::string refusal() const override { return refusal_; }
  bool isEmpty() const override { return words_.from->elements() == 0; }
  bool isForeign() const override {
    // What stays in place is read where it is written.
    const bool isRead = !words_.into || !isInPlace(words_);
    return (isRead && words_.from->device != 0) || (words_.into && words_.into->device != 0);
  }
  mnk_plan* makePlan(mnk_error_out error) const override { return mnk_hadamard_make_plan(descriptor(), error); }
  bool encode(mnk_encoder* encoder, mnk_error_out error) const override {
    return mnk_encoder_hadamard(encoder, descriptor(), error);
  }

  uint64_t apply(World& world) const override {
    if (isEmpty()) return 0;
    const TensorWords& into = words_.into ? *words_.into : *words_.from;
    const auto dtype = static_cast<DType>(into.dtype);
    std::vector<uint64_t> bits;
    std::vector<double> values, slack;
    const std::vector<double> source = elementsOf(world, *words_.from);
    for (uint64_t begin = 0; begin < source.size(); begin += words_.length()) {
      const std::vector<double> turned = turnedVector(std::span(source).subspan(begin, words_.length()));
      double squares = 0;
      for (const double element : turned) squares += element * element;
      for (const double element : turned) {
        values.push_back(element);
        slack.push_back(std::sqrt(squares) * 4e-6);
        bits.push_back(test::nearestBits(dtype, element));
      }
    }
    const auto image = world.image(into);
    for (uint64_t e = 0; e < bits.size(); ++e)
      std::memcpy(&image[e * into.elementBytes()], &bits[e], into.elementBytes());
    world.allow(into, [=](uint64_t element, uint64_t expected, uint64_t got) {
      if (bits[element] != expected) return false;  // a later call has overwritten it
      const double digit = dtype == DType::f32 ? 0x1p-22 : (dtype == DType::f16 ? 0x1p-10 : 0x1p-7);
      return std::abs(test::valueOf(dtype, got) - values[element]) <=
             slack[element] + digit * std::abs(values[element]) + (dtype == DType::f16 ? 0x1p-24 : 0x1p-126);
    });
    return into.bytes();
  }

 private:
  const mnk_hadamard* descriptor() const { return words_.isNull ? nullptr : &storage_.op; }

  static void fill(World& world, Seeded& random, const TensorWords& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    for (uint64_t e = 0; e < tensor.elements(); ++e) {
      const uint64_t bits =
          test::nearestBits(static_cast<DType>(tensor.dtype), static_cast<double>(random.below(513)) / 64 - 4);
      std::memcpy(&bytes[e * tensor.elementBytes()], &bits, tensor.elementBytes());
    }
    world.fill(tensor, bytes);
  }

  static std::vector<double> elementsOf(World& world, const TensorWords& tensor) {
    std::vector<double> values(tensor.elements());
    for (uint64_t e = 0; e < values.size(); ++e) {
      uint64_t bits = 0;
      std::memcpy(&bits, &world.image(tensor)[e * tensor.elementBytes()], tensor.elementBytes());
      values[e] = test::valueOf(static_cast<DType>(tensor.dtype), bits);
    }
    return values;
  }

  std::vector<double> turnedVector(std::span<const double> vector) const {
    std::vector<double> x(vector.begin(), vector.end());
    std::vector<double> s(x.size(), 1);
    if (words_.numbers.has_signs) s = test::signsOf(static_cast<KVCodecName>(words_.numbers.signs), x.size());
    const double root = std::sqrt(static_cast<double>(x.size()));
    for (uint64_t e = 0; e < x.size(); ++e) x[e] *= words_.numbers.is_inverse ? 1 : s[e];
    std::vector<double> y = test::hadamard(x);
    for (uint64_t e = 0; e < y.size(); ++e) y[e] *= (words_.numbers.is_inverse ? s[e] : 1) / root;
    return y;
  }

  Words words_;
  std::string refusal_;
  struct {
    mnk_hadamard op;
    unsigned char tail[sizeof(mnk_hadamard)];
  } storage_;
};

std::unique_ptr<OpCall> makeCall(World& world, Seeded& random, Wish wish, Bank bank) {
  Words words = valid(random, bank);
  if (wish == Wish::anything) {
    for (uint64_t left = oneOf<uint64_t>(random, {1, 1, 1, 2, 3}); left > 0; --left) attack(words, random);
    if (words.from) makePossible(*words.from, random);
    if (words.into) makePossible(*words.into, random);
  }
  return std::make_unique<HadamardCall>(world, random, std::move(words));
}

std::unique_ptr<Case> makeCase(World& world, Seeded& random) {
  return makeOpCase(world, random, makeCall);
}

}  // namespace

Target hadamardTarget() {
  std::vector<std::string_view> refusals = encoderRefusals();
  for (const auto& rule : hadamardRules()) {
    // A handle always has memory, and so many vectors have more of it than there is.
    if (rule.what != "a tensor has no memory" && rule.what != "there are too many vectors")
      refusals.push_back(rule.what);
  }
  refusals.insert(refusals.end(), {"mnk_hadamard is missing", "mnk_hadamard has the wrong size", "from is missing",
                                   "the number is not a codec"});
  return {.name = "Hadamard", .share = 40, .refusals = std::move(refusals), .make = makeCase};
}

}  // namespace mnk::fuzz
