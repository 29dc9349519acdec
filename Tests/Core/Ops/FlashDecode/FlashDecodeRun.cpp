#include "Ops/FlashDecode/FlashDecodeRun.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/SoftFloat.hpp"
#include "Ops/Common/EveryRun.hpp"

namespace mnk::test {

namespace {

double numberAt(std::span<const std::byte> bytes, DType dtype, uint64_t index) {
  return valueOf(dtype, bitsAt(bytes, dtype, index));
}

// The squares of what a row is wrong by, and of what it should be.
struct RowError {
  double wrong = 0;
  double size = 0;

  double relative() const { return wrong == 0 ? 0 : wrong / size; }
};

// What is NaN must be NaN; what is infinite may have become NaN on its way.
bool isFaultOfKind(double got, double expected) {
  if (std::isnan(expected)) return !std::isnan(got);
  if (std::isinf(expected)) return !std::isnan(got) && got != expected;
  return !std::isfinite(got);
}

// By how much a result may be wrong where a sink leaves it so small that f16 has few digits for it, or none. Weights
// are f32, and may be zero below its least normal number; values that they multiply are less than 2^14.
double lostTo(DType into) {
  return into == DType::f16 ? 0x1.01p-25 : 0x1p-112;
}

bool isByMatrix(const FlashDecodeCase& attend) {
  if (attend.mayBePrefilled() && attend.queries != DType::f32)
    return (attend.isQuantized() && !attend.isMixed()) || attend.cache == DType::f16;
  if (!attend.fitsMatrices() || attend.options.kernel == AttentionOptions::Kernel::vector) return false;
  return attend.options.kernel == AttentionOptions::Kernel::matrix || attend.queries != DType::f32;
}

// Whether dispatches of one op run the same: where its operands lie follows from the rest.
bool isSame(const Dispatch& a, const Dispatch& b) {
  const auto areSame = [](const auto& x, const auto& y) { return x.index == y.index && x.bytes == y.bytes; };
  return a.kernel.function == b.kernel.function && a.kernel.constants == b.kernel.constants &&
         a.grid.unit == b.grid.unit && a.grid.extent == b.grid.extent && a.grid.threadgroup == b.grid.threadgroup &&
         std::ranges::equal(a.inlines, b.inlines, areSame) &&
         std::ranges::equal(a.threadgroupMemory, b.threadgroupMemory, areSame);
}

// Whether a case that is planned for any device has the dispatches that it has when it is planned for this one.
bool isPlannedAlike(const PreparedFlashDecode& prepared, Device& device) {
  if (!prepared.isForAnyDevice) return false;
  const FlashDecode op = planOp(prepared.attend);
  const auto any = REQUIRE(mnk::plan(op)).dispatches, own = REQUIRE(mnk::plan(op, device)).dispatches;
  return std::ranges::equal(any, own, isSame);
}

}  // namespace

PreparedFlashDecode prepared(const FlashDecodeCase& attend, Seeded& random) {
  PreparedFlashDecode result{.name = attend.name, .attend = attend, .inputs = inputsOf(attend, random), .expected = {}};
  result.expected = attended(planOp(attend), result.inputs);
  return result;
}

Result<Plan> plan(const FlashDecodeCall& call) {
  return mnk::plan(call.op);
}

Result<Plan> plan(const FlashDecodeCall& call, Device& device) {
  return call.isForAnyDevice ? mnk::plan(call.op) : mnk::plan(call.op, device);
}

double allowedError(DType into, bool isByMatrix, double magnitude) {
  const double stored = into == DType::f32 ? 1e-10 : into == DType::f16 ? 1e-6 : 2e-5;
  const double least = isByMatrix ? std::max(stored, 1e-6) : stored;
  // Weights are wrong by what scores are wrong by, and those go with the size of what is summed.
  const double ofScores = magnitude * (isByMatrix ? 0x1p-13 : 0x1p-21);
  return std::max(least, ofScores * ofScores);
}

void expectRows(DType into, std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix) {
  RowError all;
  double magnitude = 0;
  for (size_t row = 0; row < expected.size(); ++row) {
    const std::vector<double>& output = expected[row].output;
    magnitude = std::max(magnitude, expected[row].magnitude);
    RowError error;
    for (size_t j = 0; j < output.size(); ++j) {
      const double x = numberAt(got, into, row * output.size() + j);
      const bool isFault = expected[row].seesKeys ? isFaultOfKind(x, output[j]) : x != 0;
      if (isFault) {
        return fail(__FILE__, __LINE__,
                    fmt::format("row {}, element {}: got {}, expected {}{}", row, j, x, output[j],
                                expected[row].seesKeys ? "" : " without keys"));
      }
      if (!std::isfinite(output[j])) continue;
      const bool isRounded = std::abs(x - output[j]) <= lostTo(into);
      if (!isRounded) error.wrong += (x - output[j]) * (x - output[j]);
      error.size += output[j] * output[j];
    }
    if (!(error.relative() <= allowedError(into, isByMatrix, expected[row].magnitude))) {
      return fail(__FILE__, __LINE__,
                  fmt::format("row {}: relative error {} of squares, allowed {}; first element {}, expected {}", row,
                              error.relative(), allowedError(into, isByMatrix, expected[row].magnitude),
                              numberAt(got, into, row * output.size()), output[0]));
    }
    all.wrong += error.wrong;
    all.size += error.size;
  }
  if (all.relative() <= allowedError(into, isByMatrix, magnitude)) return;
  fail(__FILE__, __LINE__, fmt::format("relative error {} of squares in all", all.relative()));
}

void expectLogSumExp(std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix) {
  for (size_t row = 0; row < expected.size(); ++row) {
    const double x = numberAt(got, DType::f32, row);
    const double due = expected[row].logSumExp;
    const double allowed = isByMatrix ? 2e-3 + expected[row].magnitude * 0x1p-13
                                      : 1e-5 + 1e-6 * std::abs(due) + expected[row].magnitude * 0x1p-21;
    const bool isNear = std::isfinite(due) ? std::abs(x - due) <= allowed : std::isnan(due) ? std::isnan(x) : x == due;
    if (!isNear) fail(__FILE__, __LINE__, fmt::format("log sum exp of row {}: got {}, expected {}", row, x, due));
  }
}

void expectPartials(std::span<const std::byte> sums, std::span<const std::byte> stats,
                    const std::vector<AttendedRow>& expected, bool isByMatrix) {
  std::vector<std::byte> divided;
  for (size_t row = 0; row < expected.size(); ++row) {
    const double largest = numberAt(stats, DType::f32, row * 2), sum = numberAt(stats, DType::f32, row * 2 + 1);
    const double due = expected[row].largest * std::numbers::log2e;
    if (!expected[row].seesKeys) {
      if (sum != 0) fail(__FILE__, __LINE__, fmt::format("sum of row {} without keys: got {}", row, sum));
    } else if (std::isfinite(due)) {
      const double magnitude = expected[row].magnitude;
      const double allowed =
          isByMatrix ? 4e-3 + magnitude * 0x1p-12 : 1e-5 + 2e-6 * std::abs(due) + magnitude * 0x1p-20;
      const double relative = sum * std::exp2(largest - due) / expected[row].sum - 1;
      const double mostBelow = 8;  // of any kernel
      // If scores are so large that f32 has no fractional digits, any positive sum of weights is possible.
      const bool isNear = largest <= due + allowed && largest >= due - mostBelow - allowed && sum > 0 &&
                          std::isfinite(sum) && (allowed > 0.5 || std::abs(relative) <= allowed);
      if (!isNear) {
        fail(__FILE__, __LINE__,
             fmt::format("stats of row {}: got {} and {}, expected {} and {}", row, largest, sum, due,
                         expected[row].sum));
      }
    } else if (!std::isnan(sum) && !std::isnan(largest)) {
      fail(__FILE__, __LINE__, fmt::format("stats of row {}: got {} and {}, expected NaN", row, largest, sum));
    }
    const uint64_t headDim = expected[row].output.size();
    for (uint64_t j = 0; j < headDim; ++j) {
      const double x = numberAt(sums, DType::f32, row * headDim + j);
      const uint64_t bits = nearestBits(DType::f32, sum == 0 ? x : x / sum);
      const auto* begin = reinterpret_cast<const std::byte*>(&bits);
      divided.insert(divided.end(), begin, begin + sizeof(float));
    }
  }
  expectRows(DType::f32, divided, expected, isByMatrix);
}

FlashDecodeRun::FlashDecodeRun(const std::shared_ptr<Device>& device, const PreparedFlashDecode& prepared, Seeded&)
    : prepared_(&prepared), operands_(device) {
  call_.isForAnyDevice = prepared.isForAnyDevice;
  call_.op = makeOp(prepared.attend, [&](std::string_view name, DType dtype, const Shape& shape, uint64_t shift) {
    return operands_.make(name, dtype, shape, shift);
  });
  for (const auto& [name, bytes] : prepared.inputs) operands_.set(name, bytes);
  if (!prepared.attend.hasScratch) return;
  const Shape scratch = REQUIRE(Shape::make({REQUIRE(plan(call_, *device)).scratchBytes}));
  call_.op.scratch = operands_.make("scratch", DType::u8, scratch, 0);
}

void FlashDecodeRun::expectAttended() const {
  const Context context(prepared_->name);
  operands_.expectAsBefore({"into", "sums", "stats", "log sum exp", "scratch"});
  const bool isMatrix = isByMatrix(prepared_->attend);
  const auto& expected = prepared_->expected;
  const AttentionResults& results = call_.op.results;
  if (results.output) expectRows(results.output->dtype(), operands_.now("into"), expected, isMatrix);
  if (results.partials) expectPartials(operands_.now("sums"), operands_.now("stats"), expected, isMatrix);
  if (results.logSumExp) expectLogSumExp(operands_.now("log sum exp"), expected, isMatrix);
}

std::vector<std::byte> FlashDecodeRun::results() const {
  std::vector<std::byte> all;
  for (const char* name : {"into", "sums", "stats", "log sum exp"}) {
    const auto bytes = operands_.now(name);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

void runOnEveryDevice(const std::vector<FlashDecodeCase>& cases) {
  constexpr size_t kCasesAtOnce = 64;  // whose memory is held
  Seeded random;
  for (size_t begin = 0; begin < cases.size(); begin += kCasesAtOnce) {
    std::vector<PreparedFlashDecode> all;
    const auto add = [&](const PreparedFlashDecode& made) {
      all.push_back(made);
      // For matrices, a device must be asked; many rows take many passes of the kernel that any device has.
      if (made.attend.options.kernel == AttentionOptions::Kernel::matrix || made.attend.mayBePrefilled()) return;
      all.push_back(made);
      all.back().name += ", as planned for any device";
      all.back().isForAnyDevice = true;
    };
    for (size_t c = begin; c < std::min(cases.size(), begin + kCasesAtOnce); ++c) {
      PreparedFlashDecode made = prepared(cases[c], random);
      add(made);
      if (!cases[c].fitsMatrices() || cases[c].options.kernel != AttentionOptions::Kernel::vector) continue;
      made.name += ", by the matrix kernel";
      made.attend.options.kernel = AttentionOptions::Kernel::matrix;
      add(made);
    }
    runCases(all, &FlashDecodeRun::expectAttended, isPlannedAlike);
  }
}

}  // namespace mnk::test
