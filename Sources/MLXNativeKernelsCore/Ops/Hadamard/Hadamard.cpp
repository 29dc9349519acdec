#include "MLXNativeKernels/Generated/KVCacheQuantize.hpp"

#include "Hadamard/HadamardTypes.h"
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/Hadamard/HadamardRules.hpp"
#include "Support/Errors.hpp"

namespace mnk {

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
