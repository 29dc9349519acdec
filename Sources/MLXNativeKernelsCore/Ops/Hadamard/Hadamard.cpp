#include "MLXNativeKernels/Hadamard.hpp"

#include <algorithm>

#include "Hadamard/HadamardTypes.h"
#include "Ops/Common/VectorLanes.hpp"
#include "Ops/Hadamard/HadamardRules.hpp"
#include "Support/Format.hpp"
#include "Support/Guard.hpp"
#include "Support/Try.hpp"

namespace mnk {

namespace {

using Op = Hadamard;

uint32_t signsOf(const Op& op) {
  if (!op.signs) return kHadamardNoSigns;
  return *op.signs == KVCodecName::turbo ? kHadamardTurboSigns : kHadamardMlx1Signs;
}

Dispatch makeDispatch(const Op& op) {
  const Tensor& into = op.into ? *op.into : op.from;
  const bool isOutOfPlace = !isInPlace(op);
  const uint64_t length = lengthOf(op);
  const uint64_t vectors = op.from.shape().elementCount() / length;
  VectorLanes lanes = VectorLanes::forVectors(vectors, length, length);
  const uint32_t parts = std::max<uint32_t>(lanes.chunks / 8, 1);
  lanes.chunks /= parts;
  const HadamardParams params{.length = static_cast<uint32_t>(length),
                              .lanes = lanes.lanesOf(length / parts),
                              .vectors = static_cast<uint32_t>(vectors),
                              .signs = signsOf(op),
                              .isInverse = op.isInverse,
                              .inverseRoot = inverseRootOf(length)};
  Dispatch dispatch;
  dispatch.kind = Op::name;
  dispatch.kernel.function = fmt::format("hadamard_{}_{}", lanes.chunks, parts);
  dispatch.kernel.constants = {{kHadamardFromType, static_cast<uint32_t>(op.from.dtype())},
                               {kHadamardIntoType, static_cast<uint32_t>(into.dtype())},
                               {kHadamardIsOutOfPlace, isOutOfPlace},
                               {kHadamardIsVectorized, isAlignedTo16Bytes(op.from) && isAlignedTo16Bytes(into)}};
  dispatch.inlines.push_back(InlineBytes::of(kHadamardParams, params));
  if (isOutOfPlace) dispatch.buffers.push_back(Binding::whole(kHadamardFrom, op.from, Access::read));
  dispatch.buffers.push_back(Binding::whole(kHadamardInto, into, isOutOfPlace ? Access::write : Access::readWrite));
  // Simdgroups that share a vector form one threadgroup.
  dispatch.grid = gridOf(lanes, lanes.simdgroupsOf(length / parts, vectors), 1);
  dispatch.grid.threadgroup[0] *= parts;
  return dispatch;
}

}  // namespace

Result<Plan> plan(const Hadamard& op) {
  return guarded(Op::name, [&]() -> Result<Plan> {
    MNK_TRY(checkRules(hadamardRules(), op, Op::name));
    Plan plan{.op = std::string(Op::name), .dispatches = {}};
    if (op.from.shape().elementCount() != 0) plan.dispatches.push_back(makeDispatch(op));
    return plan;
  });
}

}  // namespace mnk
