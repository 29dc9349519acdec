#include "Ops/Hadamard/HadamardRules.hpp"

#include <bit>

#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

uint64_t vectorsOf(const Hadamard& op) {
  return op.from.shape().elementCount() / lengthOf(op);
}

// The supported lengths that are not powers of two are those of turbo.
bool hasLength(const Hadamard& op) {
  const uint64_t length = lengthOf(op);
  if (std::has_single_bit(length)) return length >= 4 && length <= Hadamard::kMaxLength;
  return op.signs != KVCodec::Name::mlx1 && KVCodec{.name = KVCodec::Name::turbo}.canQuantize(length);
}

constexpr Rule<Hadamard> kHadamardRules[] = {
    INVALID_IF(!op.from || (op.into && !*op.into), "a tensor has no memory",
               op.from ? "a target without memory" : "a source without memory", "tensors with memory",
               "Make the tensors before turning them."),

    INVALID_IF(!isFloat(op.from.dtype()) || (op.into && !isFloat(op.into->dtype())), "the tensors are not of floats",
               name(isFloat(op.from.dtype()) ? op.into->dtype() : op.from.dtype()), "f32, f16 or bf16",
               "Convert the tensor."),

    INVALID_IF(op.signs > KVCodec::Name::mlx1, "the codec has no signs", name(*op.signs), "turbo or mlx1",
               "Leave the signs out: mlx1Affine4 rotates without signs, and mlx1Unrotated does not rotate."),

    INVALID_IF(!hasLength(op), "the transform does not support this vector length", op.from.shape().text(),
               fmt::format("a last axis that is a power of two from 4 to {}{}", Hadamard::kMaxLength,
                           op.signs == KVCodec::Name::mlx1 ? "" : ", or 80, 96, 112 or 192"),
               "Reshape the tensor, or pad its vectors."),

    INVALID_IF(op.signs == KVCodec::Name::turbo && !KVCodec{.name = KVCodec::Name::turbo}.canQuantize(lengthOf(op)),
               "the codec has no signs for this length", fmt::format("turbo, vectors of {}", lengthOf(op)),
               "32, 64, 80, 96, 112, 128, 192, 256 or 512 with the signs of turbo",
               "Turn vectors of a head dim that the codec has, or leave the signs out."),

    INVALID_IF(op.into.has_value() && op.into->shape() != op.from.shape(), "the target has another shape",
               op.into->shape().text(), op.from.shape().text(), "Give both one shape."),

    INVALID_IF(vectorsOf(op) >= kMaxKVExtent, "there are too many vectors", fmt::format("{}", vectorsOf(op)),
               "less than 2^31", "Turn a part of the tensor at a time."),

    INVALID_IF(!isInPlace(op) && op.from.range().overlaps(op.into->range()),
               "source and target overlap without being the same", "a target that shares a part of the source's memory",
               "separate memory, or the same tensor", "Leave the target out to turn vectors in place."),
};

}  // namespace

std::span<const Rule<Hadamard>> hadamardRules() {
  return kHadamardRules;
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
