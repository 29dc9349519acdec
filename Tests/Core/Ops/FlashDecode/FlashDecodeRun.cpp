#include "Ops/FlashDecode/FlashDecodeRun.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "Harness/DeclaredBytes.hpp"
#include "Harness/SoftFloat.hpp"
#include "Runtime/DispatchRules.hpp"

namespace mnk::test {

namespace {

double numberAt(std::span<const std::byte> bytes, DType dtype, uint64_t index) {
  return valueOf(dtype, bitsAt(bytes, dtype, index));
}

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

// How far results may be from the reference, relative in squares. Results are stored in a dtype; scores are rounded,
// by f32 or, in the matrix kernel, with operands of f16.
double allowedError(DType into, bool isByMatrix, double magnitude) {
  const double stored = into == DType::f32 ? 1e-10 : into == DType::f16 ? 1e-6 : 2e-5;
  const double least = isByMatrix ? std::max(stored, 1e-6) : stored;
  // Weights are wrong by what scores are wrong by, and those go with the size of what is summed.
  const double ofScores = magnitude * (isByMatrix ? 0x1p-13 : 0x1p-21);
  return std::max(least, ofScores * ofScores);
}

// Whether the device cannot run the case, or a case that is planned for any device has the dispatches there that it has
// when it is planned for this one.
bool isLeftOut(const PreparedFlashDecode& prepared, Device& device) {
  if (prepared.attend.options.merge == AttentionOptions::Merge::inKernel && !device.profile().ordersThreadgroups) {
    return true;
  }
  if (!prepared.isForAnyDevice) return false;
  const FlashDecode op = planOp(prepared.attend);
  const auto lineOf = [](const Dispatch& dispatch) { return dispatchLine(dispatch, SIZE_MAX); };
  const auto any = REQUIRE(mnk::plan(op)).dispatches, own = REQUIRE(mnk::plan(op, device)).dispatches;
  return std::ranges::equal(any, own, {}, lineOf, lineOf);
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
  const uint32_t simdgroups = call.prepared->simdgroups;
  Result<Plan> planned = call.prepared->isForAnyDevice ? mnk::plan(call.op) : mnk::plan(call.op, device);
  if (!planned || simdgroups == 0) return planned;
  for (Dispatch& dispatch : planned->dispatches) {
    if (dispatch.kernel.function.starts_with("flashDecodeReduce")) continue;
    // Merging may have more simdgroups than planned, and memory for them; otherwise there may be fewer.
    if (call.op.options.merge == AttentionOptions::Merge::inKernel) {
      dispatch.grid.threadgroup = {32 * simdgroups, 1, 1};
      dispatch.threadgroupMemory.at(0).bytes = 32 * 1024;
    } else {
      dispatch.grid = shrinkToLimit(32 * simdgroups, dispatch.grid);
    }
  }
  return planned;
}

void expectRows(DType into, std::span<const std::byte> got, const std::vector<AttendedRow>& expected, bool isByMatrix) {
  for (size_t row = 0; row < expected.size(); ++row) {
    const std::vector<double>& output = expected[row].output;
    double wrong = 0, size = 0;  // squares of what the row is wrong by, and of what it should be
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
      if (!isRounded) wrong += (x - output[j]) * (x - output[j]);
      size += output[j] * output[j];
    }
    const double allowed = allowedError(into, isByMatrix, expected[row].magnitude);
    if (wrong <= allowed * size) continue;
    return fail(__FILE__, __LINE__,
                fmt::format("row {}: relative error {} of squares, allowed {}; first element {}, expected {}", row,
                            wrong / size, allowed, numberAt(got, into, row * output.size()), output[0]));
  }
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

FlashDecodeCall makeOp(const PreparedFlashDecode& prepared, const MakeNamedTensor& makeTensor) {
  return {makeOp(prepared.attend, makeTensor), &prepared};
}

void fill(FlashDecodeRun& run, const PreparedFlashDecode& prepared, Seeded&) {
  for (const auto& [name, bytes] : prepared.inputs) run.set(name, bytes);
}

void expectOutcome(const FlashDecodeRun& run) {
  run.expectAsBefore({"into", "sums", "stats", "log sum exp", "scratch"});
  const auto& [op, prepared] = run.op();
  const bool isMatrix = isByMatrix(prepared->attend);
  const AttentionResults& results = op.results;
  if (results.output) expectRows(results.output->dtype(), run.now("into"), prepared->expected, isMatrix);
  if (results.partials) expectPartials(run.now("sums"), run.now("stats"), prepared->expected, isMatrix);
  if (results.logSumExp) expectLogSumExp(run.now("log sum exp"), prepared->expected, isMatrix);
}

void attendOnEveryDevice(const std::vector<FlashDecodeCase>& cases, uint32_t simdgroups) {
  using enum AttentionOptions::Kernel;
  constexpr size_t kCasesAtOnce = 64;  // whose memory is held
  Seeded random;
  const bool isNamed = cases.size() <= kCasesAtOnce;  // each has a reason; of drawn ones, half run by matrices too
  for (size_t begin = 0; begin < cases.size(); begin += kCasesAtOnce) {
    std::vector<PreparedFlashDecode> all;
    for (size_t c = begin; c < std::min(cases.size(), begin + kCasesAtOnce); ++c) {
      PreparedFlashDecode made = prepared(cases[c], random);
      made.simdgroups = simdgroups;
      all.push_back(made);
      if (simdgroups != 0) continue;
      const AttentionOptions& options = cases[c].options;
      // A part of the cases is enough for both: devices of GPUs choose these kernels, too. For matrices, a device must
      // be asked; many rows take many passes.
      const bool isForOne = options.kernel == matrix || options.merge == AttentionOptions::Merge::inKernel;
      if (c % 4 == 0 && !isForOne && !cases[c].mayBePrefilled()) {
        all.push_back(made);
        all.back().name += ", as planned for any device";
        all.back().isForAnyDevice = true;
      }
      if ((c % 2 == 0 || isNamed) && options.kernel == vector && cases[c].fitsMatrices()) {
        made.name += ", by the matrix kernel";
        made.attend.options.kernel = matrix;
        all.push_back(made);
      }
    }
    runOnEveryDevice(all, isLeftOut);
  }
}

}  // namespace mnk::test
