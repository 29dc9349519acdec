#include "Ops/HadamardRules.hpp"

#include <bit>

#include "MLXNativeKernels/KVCacheView.hpp"
#include "Support/Format.hpp"

namespace mnk {

namespace {

using Op = Hadamard;

uint64_t vectorsOf(const Op& op) {
  return op.from.shape().elementCount() / lengthOf(op);
}

constexpr Rule<Op> kRules[] = {
    {"a tensor has no memory", [](const Op& op) { return bool(op.from) && (!op.into || bool(*op.into)); },
     [](const Op& op) { return std::string(op.from ? "a target without memory" : "a source without memory"); },
     [](const Op&) { return std::string("tensors with memory"); }, "Make the tensors before turning them."},

    {"the tensors are not of floats",
     [](const Op& op) { return isFloat(op.from.dtype()) && (!op.into || isFloat(op.into->dtype())); },
     [](const Op& op) { return std::string(name(isFloat(op.from.dtype()) ? op.into->dtype() : op.from.dtype())); },
     [](const Op&) { return std::string("f32, f16 or bf16"); }, "Convert the tensor."},

    {"vectors have no length that can be turned",
     [](const Op& op) {
       return std::has_single_bit(lengthOf(op)) && lengthOf(op) >= 4 && lengthOf(op) <= Op::kMaxLength;
     },
     [](const Op& op) { return op.from.shape().text(); },
     [](const Op&) { return fmt::format("a last axis that is a power of two from 4 to {}", Op::kMaxLength); },
     "Reshape the tensor, or pad its vectors."},

    {"the codec has no signs for this length",
     [](const Op& op) {
       return op.signs != KVCodecName::turbo || KVCodec{.name = KVCodecName::turbo}.canCode(lengthOf(op));
     },
     [](const Op& op) { return fmt::format("turbo, vectors of {}", lengthOf(op)); },
     [](const Op&) { return std::string("32, 64, 128, 256 or 512 with the signs of turbo"); },
     "Turn vectors of a head dim that the codec has, or leave the signs out."},

    {"the target has another shape", [](const Op& op) { return !op.into || op.into->shape() == op.from.shape(); },
     [](const Op& op) { return op.into->shape().text(); }, [](const Op& op) { return op.from.shape().text(); },
     "Give both one shape."},

    {"there are too many vectors", [](const Op& op) { return vectorsOf(op) < kMaxKVExtent; },
     [](const Op& op) { return fmt::format("{}", vectorsOf(op)); },
     [](const Op&) { return std::string("less than 2^31"); }, "Turn a part of the tensor at a time."},

    {"source and target overlap without being the same",
     [](const Op& op) { return isInPlace(op) || !op.from.range().overlaps(op.into->range()); },
     [](const Op&) { return std::string("a target that shares a part of the source's memory"); },
     [](const Op&) { return std::string("separate memory, or the same tensor"); },
     "Leave the target out to turn vectors in place."},
};

}  // namespace

std::span<const Rule<Hadamard>> hadamardRules() {
  return kRules;
}

bool isInPlace(const Hadamard& op) {
  if (!op.into) return true;
  const MemoryRange from = op.from.range();
  const MemoryRange into = op.into->range();
  return op.from.dtype() == op.into->dtype() && from.begin == into.begin && from.space == into.space;
}

uint64_t lengthOf(const Hadamard& op) {
  const Shape& shape = op.from.shape();
  return shape.rank() == 0 ? 0 : shape[shape.rank() - 1];
}

}  // namespace mnk
