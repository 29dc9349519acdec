#include "CApiHarness.hpp"

#include "CAPI/Handles.hpp"

namespace mnk::test {

namespace {

constexpr GoldenText kRefusals{
    "CAPI/Refusals.inc",
#include "Refusals.inc"
};

}  // namespace

Refusals::Refusals(std::source_location where) : errors_(kRefusals, where) {}

void Refusals::add(bool isRefused, std::source_location at) {
  if (!isRefused || !caught_.isSet()) return errors_.add(nullptr, at);
  const Error error = caught_.get()->error;
  caught_.expect({error.code, error.op, error.what, error.got, error.expected, error.fix}, at);
  errors_.add(&error, at);
}

}  // namespace mnk::test
