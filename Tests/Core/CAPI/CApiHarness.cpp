#include "CApiHarness.hpp"

#include "CAPI/Handles.hpp"

namespace mnk::test {

void Refusals::add(bool isRefused, std::source_location at) {
  if (!isRefused || !caught_.isSet()) return RefusedCalls::add(nullptr, at);
  const Error error = caught_.get()->error;
  caught_.expect({error.code, error.op, error.what, error.got, error.expected, error.fix}, at);
  EXPECT(!error.retryable);
  RefusedCalls::add(&error, at);
}

}  // namespace mnk::test
