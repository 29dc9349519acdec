#include "CApiHarness.hpp"

#include <utility>

#include "CAPI/Handles.hpp"

namespace mnk::test {

namespace {

constexpr GoldenText kRefusals{
    "CAPI/Refusals.inc",
#include "Refusals.inc"
};

}  // namespace

Refusals::Refusals(std::source_location where) : test_(testAt(where)) {}

Refusals::~Refusals() {
  std::vector<std::string> lines = errors_.lines();
  lines.emplace_back();  // there is no further line
  for (size_t i = 0; i < lines.size(); ++i) expectGoldenLine(kRefusals, fmt::format("{} {:02}", test_, i), lines[i]);
}

void Refusals::add(bool isRefused, std::source_location at) {
  if (!isRefused || !caught_.isSet()) return fail(at.file_name(), static_cast<int>(at.line()), "it is not refused");
  Error error = caught_.get()->error;
  caught_.expect({error.code, error.op, error.what, error.got, error.expected, error.fix}, at);
  EXPECT(!error.retryable);
  if (const std::string message = error.message(); std::exchange(last_, message) != message) errors_.add(error, true);
}

}  // namespace mnk::test
