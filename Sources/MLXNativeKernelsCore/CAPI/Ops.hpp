// The two functions that every op has: one makes a plan, the other encodes it.
#pragma once
#include "CAPI/Generated/Read.hpp"
#include "Support/Errors.hpp"

namespace mnk::c {

template <typename Op, typename Struct>
Result<Op> opFrom(const Struct* from) {
  if (!from) return nullArgument("op");
  Op op;
  MNK_TRY(read(op, *from, {.op = Op::name}));
  return op;
}

template <typename Op, typename Struct>
mnk_plan* makePlan(const Struct* from, mnk_error_out error) {
  return make<mnk_plan>(error, {}, [&]() -> Result<mnk_plan*> {
    MNK_TRY(const auto op, opFrom<Op>(from));
    return handleFor(plan(op));
  });
}
template <typename Op, typename Struct>
mnk_plan* makePlan(const Struct* from, const mnk_device* device, mnk_error_out error) {
  return make<mnk_plan>(error, {}, [&]() -> Result<mnk_plan*> {
    MNK_TRY(const auto op, opFrom<Op>(from));
    return handleFor(device ? plan(op, *device->device) : plan(op));
  });
}

template <typename Op, typename Struct>
bool encode(mnk_encoder* encoder, const Struct* from, mnk_error_out error) {
  return run(error, {{encoder, "encoder"}}, [&]() -> Result<void> {
    MNK_TRY(const auto op, opFrom<Op>(from));
    return encoder->encoder.encode(op);
  });
}

}  // namespace mnk::c
