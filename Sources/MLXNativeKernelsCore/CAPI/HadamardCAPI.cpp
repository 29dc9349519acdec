#include "CAPI/Generated/Read.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace {

Result<Hadamard> opFrom(const mnk_hadamard* op) {
  MNK_TRY(auto input, c::descriptor("mnk_hadamard", op));
  if (!input.from) return c::nullArgument("from");
  Hadamard hadamard{.from = input.from->tensor, .isInverse = input.is_inverse};
  if (input.into) hadamard.into = input.into->tensor;
  if (input.signs != MNK_KV_CODEC_NAME_TURBO && !input.has_signs)
    return c::ignored(Hadamard::name, "signs", "has_signs");
  if (input.has_signs) MNK_TRY(c::read(hadamard.signs.emplace(), input.signs));
  return hadamard;
}

}  // namespace

mnk_plan* mnk_hadamard_make_plan(const mnk_hadamard* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(opFrom(op)); });
}

bool mnk_encoder_hadamard(mnk_encoder* encoder, const mnk_hadamard* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, opFrom(op)); });
}
