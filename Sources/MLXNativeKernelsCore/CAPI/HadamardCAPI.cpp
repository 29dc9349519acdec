#include "CAPI/Handles.hpp"

#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<Hadamard> opFrom(const mnk_hadamard* op) {
  MNK_TRY(auto given, c::descriptor("mnk_hadamard", op));
  if (!given.from) return c::nullArgument("from");
  Hadamard hadamard{.from = given.from->tensor, .isInverse = given.is_inverse};
  if (given.into) hadamard.into = given.into->tensor;
  if (given.has_signs) {
    MNK_TRY(auto signs, c::codecName(given.signs));
    hadamard.signs = signs;
  }
  return hadamard;
}

}  // namespace

mnk_plan* mnk_hadamard_make_plan(const mnk_hadamard* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(opFrom(op)); });
}

bool mnk_encoder_hadamard(mnk_encoder* encoder, const mnk_hadamard* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, opFrom(op)); });
}
