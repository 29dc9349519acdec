#include "Ops/Hadamard/Hadamard.hpp"

#include <bit>

#include "Hadamard/HadamardTypes.h"
#include "MLXNativeKernels/Generated/CacheViews.hpp"
#include "Ops/Common/HeadsMemory.hpp"

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

namespace {

uint32_t signsOf(const Hadamard& op) {
  if (!op.signs) return kHadamardNoSigns;
  return *op.signs == KVCodec::Name::turbo ? kHadamardTurboSigns : kHadamardMlx1Signs;
}

Dispatch makeDispatch(const Hadamard& op) {
  const Tensor& into = op.into ? *op.into : op.from;
  const bool isOutOfPlace = !isInPlace(op);
  const uint64_t length = lengthOf(op);
  const uint64_t vectors = op.from.shape().elementCount() / length;
  const VectorLanes lanes = VectorLanes::forVectors(vectors, length, length);
  const uint32_t parts = static_cast<uint32_t>(length / 1024);
  const HadamardParams params{.length = static_cast<uint32_t>(length),
                              .lanes = lanes.lanesOf(length),
                              .vectors = static_cast<uint32_t>(vectors),
                              .signs = signsOf(op),
                              .isInverse = op.isInverse,
                              .inverseRoot = inverseRootOf(length)};
  Dispatch dispatch;
  dispatch.kind = Hadamard::name;
  dispatch.kernel.function =
      parts == 0 ? fmt::format("hadamard_{}", lanes.chunks) : fmt::format("hadamardParts_{}", parts);
  dispatch.kernel.constants = {{kHadamardFromType, static_cast<uint32_t>(op.from.dtype())},
                               {kHadamardIntoType, static_cast<uint32_t>(into.dtype())},
                               {kHadamardIsOutOfPlace, isOutOfPlace},
                               {kHadamardIsVectorized, isAlignedTo16Bytes(op.from) && isAlignedTo16Bytes(into)}};
  dispatch.inlines.push_back(InlineBytes::of(kHadamardParams, params));
  if (isOutOfPlace) dispatch.buffers.push_back(Binding::whole(kHadamardFrom, op.from, Access::read));
  dispatch.buffers.push_back(Binding::whole(kHadamardInto, into, isOutOfPlace ? Access::write : Access::readWrite));
  dispatch.grid = gridOf(lanes, lanes.simdgroupsOf(length, vectors), 1);
  // Simdgroups that share a vector form one threadgroup.
  if (parts != 0) dispatch.grid.threadgroup[0] = 32 * parts;
  return dispatch;
}

}  // namespace

Result<Plan> plan(const Hadamard& op) {
  return guarded(Hadamard::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(hadamardRules(), op, Hadamard::name));
    Plan plan{.op = std::string(Hadamard::name), .dispatches = {}};
    if (op.from.shape().elementCount() != 0) plan.dispatches.push_back(makeDispatch(op));
    return plan;
  });
}

}  // namespace mnk
