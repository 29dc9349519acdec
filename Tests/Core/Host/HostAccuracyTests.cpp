// The Host device with HostOptions::perturb: results have the largest errors Metal allows, and never more.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "Harness/Seeded.hpp"
#include "Harness/SoftFloat.hpp"
#include "HostTestSupport.hpp"
#include "MetalStdlib/Accuracy.h"

namespace mnk::test {

namespace {

using host::Accuracy;
using host::accuracyOf;
using host::allowedError;
using host::Bound;
using host::kPi;
using host::Promise;

// The range of results that a formula of the specification allows: every step adds its own error.
struct Range {
  double low, high;
};

Range rounded(double low, double high) {
  const auto slack = [](double value) { return std::abs(value) * 0x1p-24 + 0x1p-150; };
  return {low - slack(low), high + slack(high)};
}
Range operator+(Range a, Range b) {
  return rounded(a.low + b.low, a.high + b.high);
}
Range operator-(Range a) {
  return {-a.high, -a.low};
}
Range operator-(Range a, Range b) {
  return a + -b;
}
Range operator*(Range a, Range b) {
  const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  return rounded(low, high);
}
Range number(double value) {
  return {value, value};
}
// A function that is monotonic over the range. Its bound may depend on the operand.
Range through(const Bound& bound, double (*function)(double), Range x) {
  const double first = function(x.low), last = function(x.high);
  const double error = std::max(allowedError(bound, x.low, first, host::kSingle),  //
                                allowedError(bound, x.high, last, host::kSingle));
  return {std::min(first, last) - error, std::max(first, last) + error};
}
#define FAST(name, expression)                                                           \
  Range name(Range operand) {                                                            \
    return through(                                                                      \
        accuracyOf(#name).fast, [](double x) -> double { return expression; }, operand); \
  }
FAST(atan, std::atan(x))
FAST(cos, std::cos(x))
FAST(exp, std::exp(x))
FAST(exp2, std::exp2(x))
FAST(log, std::log(x))
FAST(log2, std::log2(x))
FAST(reciprocal, 1 / x)
FAST(rsqrt, 1 / std::sqrt(x))
FAST(sin, std::sin(x))
#undef FAST
Range sqrt(Range x) {
  return x * rsqrt(x);
}
Range tan(Range x) {
  return sin(x) * reciprocal(cos(x));
}
Range divide(Range x, Range y) {
  const auto [low, high] = std::minmax({x.low / y.low, x.low / y.high, x.high / y.low, x.high / y.high});
  const double error = allowedError(accuracyOf("divide").fast, y.low, std::max(-low, high), host::kSingle);
  return {low - error, high + error};
}

// A function and suitable operands: x in [low, high], y in [yLow, yHigh].
struct Row {
  const Accuracy& accuracy;
  double (*exact)(double x, double y);
  double low, high;
  Range (*formula)(Range x, Range y) = nullptr;
  double yLow = 1, yHigh = 1;
};
#define EXACT(expression) [](auto x, [[maybe_unused]] auto y) -> decltype(x) { return expression; }
#define FORMULA(expression) [](Range x, [[maybe_unused]] Range y) -> Range { return expression; }
// As in Accuracy.metal.
const Row kRows[] = {
    {accuracyOf("acos"), EXACT(std::acos(x)), -1, 1},
    {accuracyOf("acosh"), EXACT(std::acosh(x)), 1.5, 100, FORMULA(log(x + sqrt(x * x - number(1))))},
    {accuracyOf("asin"), EXACT(std::asin(x)), -1, 1},
    {accuracyOf("asinh"), EXACT(std::asinh(x)), -5, 100, FORMULA(log(x + sqrt(x * x + number(1))))},
    {accuracyOf("atan"), EXACT(std::atan(x)), -9, 9},
    {accuracyOf("atanh"), EXACT(std::atanh(x)), -0.9, 0.9,
     FORMULA(number(0.5) * log(divide(number(1) + x, number(1) - x)))},
    {accuracyOf("cos"), EXACT(std::cos(x)), -9, 9},
    {accuracyOf("cosh"), EXACT(std::cosh(x)), -9, 9, FORMULA(number(0.5) * (exp(x) + exp(-x)))},
    {accuracyOf("cospi"), EXACT(std::cos(x* kPi)), -3, 3},
    {accuracyOf("exp"), EXACT(std::exp(x)), -103, 88},
    {accuracyOf("exp10"), EXACT(std::pow(10, x)), -30, 30, FORMULA(exp2(x* rounded(std::log2(10), std::log2(10))))},
    {accuracyOf("exp2"), EXACT(std::exp2(x)), -20, 15},
    {accuracyOf("log"), EXACT(std::log(x)), 0.001, 4},
    {accuracyOf("log10"), EXACT(std::log10(x)), 0.001, 99, FORMULA(log2(x) * rounded(std::log10(2), std::log10(2)))},
    {accuracyOf("log2"), EXACT(std::log2(x)), 0.001, 4},
    {accuracyOf("rsqrt"), EXACT(1 / std::sqrt(x)), 0.001, 99},
    {accuracyOf("sin"), EXACT(std::sin(x)), -9, 9},
    {accuracyOf("sinh"), EXACT(std::sinh(x)), -9, 9, FORMULA(number(0.5) * (exp(x) - exp(-x)))},
    {accuracyOf("sinpi"), EXACT(std::sin(x* kPi)), -3, 3},
    {accuracyOf("sqrt"), EXACT(std::sqrt(x)), 0.001, 99, FORMULA(sqrt(x))},
    {accuracyOf("tan"), EXACT(std::tan(x)), -1.4, 1.4, FORMULA(tan(x))},
    {accuracyOf("tanh"), EXACT(std::tanh(x)), -5, 5, FORMULA(divide(exp(x + x) - number(1), exp(x + x) + number(1)))},
    {accuracyOf("tanpi"), EXACT(std::tan(x* kPi)), -0.4, 0.4, FORMULA(tan(x* rounded(kPi, kPi)))},
    {accuracyOf("atan2"), EXACT(std::atan2(x, y)), 0.5, 9,
     FORMULA(atan(divide(x, y)) + (y.low > 0 ? number(0) : rounded(kPi, kPi))), -9, 9},
    {accuracyOf("divide"), EXACT(x / y), -9, 9, nullptr, 0.5, 9},
    {accuracyOf("pow"), EXACT(std::pow(x, y)), 0.1, 9, FORMULA(exp2(y* log2(x))), -3, 3},
    {accuracyOf("powr"), EXACT(std::pow(x, y)), 0.1, 9, FORMULA(exp2(y* log2(x))), -3, 3},
};
constexpr uint32_t kCount = 2048;  // operands of a row

struct Column {
  const char* function;
  Bound Accuracy::*bound;
  DType dtype;
  host::FloatFormat format;
};
const Column kColumns[] = {{"preciseRows", &Accuracy::precise, DType::f32, host::kSingle},
                           {"fastRows", &Accuracy::fast, DType::f32, host::kSingle},
                           {"bareRows", &Accuracy::fast, DType::f32, host::kSingle},
                           {"halfRows", &Accuracy::half, DType::f16, host::kHalf}};

// The kernels, compiled with perturbed functions.
const std::shared_ptr<Library>& perturbedKernels() {
  const auto tests = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path();
  static const auto library = REQUIRE(hostDevice({.perturbsResults = true})
                                          ->registry()
                                          .library({LibrarySource::Kind::path, tests / "Shaders/Accuracy.metal", ""}));
  return library;
}

// A device that runs them.
struct Bench {
  std::shared_ptr<Device> device;
  std::shared_ptr<Library> library = perturbedKernels();

  explicit Bench(const HostOptions& options) : device(hostDevice(options)) {}

  std::vector<double> run(const std::string& function, DType dtype, const std::vector<double>& x,
                          const std::vector<double>& y, uint32_t count, size_t results) const {
    std::vector<std::byte> first = bytesOfValues(dtype, x), second = bytesOfValues(dtype, y),
                           out(results * byteSize(dtype));
    REQUIRE(runOn(device,
                  {.function = function,
                   .grid = threads({count, 1, 1}, {std::min(count, 64u), 1, 1}),
                   .buffers = {std::span(first), std::span(second), std::span(out)}},
                  library));
    return valuesOf(dtype, out);
  }
};

struct Operands {
  std::vector<double> x, y;
};
// Rounded to the dtype, so that the exact function gets the same operands as the kernel.
Operands operandsFor(DType dtype) {
  Seeded random(41);
  const auto between = [&](double low, double high) {
    const double value = low + (high - low) * double(random.below(1u << 30)) * 0x1p-30;
    return valueOf(dtype, nearestBits(dtype, value));
  };
  Operands result;
  for (const Row& row : kRows) {
    for (uint32_t i = 0; i < kCount; ++i) {
      result.x.push_back(between(row.low, row.high));
      result.y.push_back(between(row.yLow, row.yHigh));
    }
  }
  return result;
}

// The least and greatest results that the column allows.
Range allowed(const Row& row, const Column& column, double x, double y) {
  const Bound& bound = row.accuracy.*column.bound;
  if (bound.promise == Promise::formula) return row.formula(number(x), number(y));
  // The factor keeps a power of two from rounding to the number below it, where an ulp is half as large.
  const double exact = row.exact(x, y) * (1 + 0x1p-48);
  const bool isQuotient = &row.accuracy == &accuracyOf("divide");
  const double error = allowedError(bound, isQuotient ? y : x, exact, column.format);
  return {exact - error, exact + error};
}

void expectColumn(const Bench& bench, const Column& column) {
  const Operands operands = operandsFor(column.dtype);
  const auto got = bench.run(column.function, column.dtype, operands.x, operands.y, kCount, std::size(kRows) * kCount);
  for (size_t r = 0; r < std::size(kRows); ++r) {
    const Row& row = kRows[r];
    double reached = 0;  // the largest error, relative to the allowed one
    for (size_t i = r * kCount; i < (r + 1) * kCount; ++i) {
      const double exact = row.exact(operands.x[i], operands.y[i]);
      const Range range = allowed(row, column, operands.x[i], operands.y[i]);
      // The double functions err too, and so does rounding to half through float.
      const double own = std::abs(exact) * 0x1p-46 + host::ulpAt(exact, column.format) * 0x1p-12;
      const bool isSubnormal = std::abs(exact) < std::ldexp(1.0, column.format.leastExponent);
      if (isSubnormal && got[i] == 0) continue;
      if (got[i] == valueOf(column.dtype, nearestBits(column.dtype, exact)) && std::isinf(got[i])) continue;
      if (!(got[i] >= range.low - own && got[i] <= range.high + own)) {
        fail(__FILE__, __LINE__,
             fmt::format("{} {}({}, {}): got {}, expected {} to {}", column.function, row.accuracy.name, operands.x[i],
                         operands.y[i], got[i], range.low, range.high));
        break;
      }
      reached = std::max(reached, (got[i] - exact) / (got[i] > exact ? range.high - exact : range.low - exact));
    }
    // The steps of a formula rarely all err in the same direction.
    const Promise promise = (row.accuracy.*column.bound).promise;
    const double enough = promise == Promise::formula ? 0.3 : promise == Promise::exact ? 0 : 0.9;
    if (reached < enough) {
      fail(__FILE__, __LINE__,
           fmt::format("{} {} errs by {} of what is allowed, expected at least {}", column.function, row.accuracy.name,
                       reached, enough));
    }
  }
}

const Bench& perturbed() {
  static const Bench bench({.orderSeed = 7, .perturbsResults = true});
  return bench;
}

}  // namespace

TEST(HostAccuracy, TableMatchesMetalsSpecification) {
  const auto single = [](const Bound& bound, double x, double exact) {
    return allowedError(bound, x, exact, host::kSingle);
  };
  EXPECT_EQ(single(accuracyOf("exp").precise, 1, 2.718), 4 * 0x1p-22);
  EXPECT_EQ(single(accuracyOf("exp").fast, -10.3, 3e-5), 23 * 0x1p-39);
  EXPECT_EQ(single(accuracyOf("tanh").precise, 1, 0.76), 5 * 0x1p-24);
  EXPECT_EQ(single(accuracyOf("pow").precise, 3, 1.5), 16 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("sqrt").precise, 2, 1.4), 0.5 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("rsqrt").fast, 0.5, 1.4), 2 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("divide").fast, 3, 1.5), 2.5 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("divide").fast, 0x1p127, 0.7), 0.5 * 0x1p-24);
  EXPECT_EQ(single(accuracyOf("sin").fast, 3, 0.1), 0x1p-13);
  EXPECT_EQ(single(accuracyOf("cos").fast, -4 * kPi, 1), 0x1p-11);
  EXPECT_EQ(single(accuracyOf("log").fast, 1.9, 0.6), 0x1p-21);
  EXPECT_EQ(single(accuracyOf("log").fast, 4, 1.4), 3 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("log2").fast, 4, 1.4), 2 * 0x1p-23);
  EXPECT_EQ(single(accuracyOf("exp").precise, -100, 4e-44), 4 * 0x1p-149);
  EXPECT_EQ(allowedError(accuracyOf("sin").half, 1, 0.8, host::kHalf), 0x1p-11);
  EXPECT(accuracyOf("tanh").fast.promise == Promise::formula);
  EXPECT(accuracyOf("fmod").fast.promise == Promise::nothing);
}

// Excluded, with the suite, if no compiler can build programs for the machine that runs the tests.
TEST(HostRuntimeLibrary, PerturbedResultsReachTheirBounds) {
  for (const Column& column : kColumns) expectColumn(perturbed(), column);
}

TEST(HostRuntimeLibrary, PerturbedQuotientsOfBfloatErrBeyondRounding) {
  Seeded random(42);
  std::vector<double> x, y;
  for (uint32_t i = 0; i < kCount; ++i) {
    x.push_back(double(128 + random.below(128)));
    y.push_back(double(128 + random.below(128)));
  }
  const auto got = perturbed().run("brainQuotients", DType::bf16, x, y, kCount, kCount);
  double worst = 0;  // in ulps
  for (uint32_t i = 0; i < kCount; ++i) {
    worst = std::max(worst, std::abs(got[i] - x[i] / y[i]) / host::ulpAt(x[i] / y[i], host::kBrain));
  }
  EXPECT(worst > 0.5 && worst <= 0.6);
}

TEST(HostRuntimeLibrary, PerturbationLeavesZeroInfinityAndNaN) {
  for (const double special : {0.0, 1.0, -1.0, double(INFINITY), -double(INFINITY), double(NAN)}) {
    for (const Column& column : kColumns) {
      const std::vector<double> operands(std::size(kRows), special);
      const auto got = perturbed().run(column.function, column.dtype, operands, operands, 1, std::size(kRows));
      for (size_t r = 0; r < std::size(kRows); ++r) {
        const Bound& bound = kRows[r].accuracy.*column.bound;
        const double exact = valueOf(column.dtype, nearestBits(column.dtype, kRows[r].exact(special, special)));
        // Formulas may overflow in between; zero stays zero.
        if (bound.promise == Promise::formula ? exact != 0 || special != 0 : std::isfinite(exact) && exact != 0)
          continue;
        if (got[r] == exact || (std::isnan(got[r]) && std::isnan(exact))) continue;
        fail(__FILE__, __LINE__,
             fmt::format("{} {}({}): got {}, expected {}", column.function, kRows[r].accuracy.name, special, got[r],
                         exact));
      }
    }
  }
}

TEST(HostRuntimeLibrary, PerturbationLeavesExactFunctions) {
  Seeded random(43);
  std::vector<double> x, y;
  for (uint32_t i = 0; i < kCount; ++i) {
    x.push_back(float(double(random.below(1u << 24)) * 0x1p-16 - 128));
    y.push_back(float(double(random.below(1u << 24)) * 0x1p-18 + 0.5));
  }
  const std::pair<const char*, float (*)(float, float)> kFunctions[] = {
      {"ceil", EXACT(std::ceil(x))},
      {"copysign", EXACT(std::copysign(x, y))},
      {"fabs", EXACT(std::fabs(x))},
      {"fdim", EXACT(std::fdim(x, y))},
      {"floor", EXACT(std::floor(x))},
      {"fma", EXACT(std::fma(x, y, x))},
      {"fmax", EXACT(std::fmax(x, y))},
      {"fmin", EXACT(std::fmin(x, y))},
      {"fmod", EXACT(std::fmod(x, y))},
      {"rint", EXACT(std::nearbyint(x))},
      {"round", EXACT(std::round(x))},
      {"trunc", EXACT(std::trunc(x))},
      {"sqrt", EXACT(std::sqrt(std::fabs(x)))},
      {"divide", EXACT(x / y)},
      {"ldexp", EXACT(x * 8)},
  };
  const auto got = perturbed().run("exactRows", DType::f32, x, y, kCount, std::size(kFunctions) * kCount);
  for (size_t r = 0; r < std::size(kFunctions); ++r) {
    const auto& [name, exact] = kFunctions[r];
    for (size_t i = 0; i < kCount; ++i) {
      const double expected = exact(static_cast<float>(x[i]), static_cast<float>(y[i]));
      if (got[r * kCount + i] == expected) continue;
      fail(__FILE__, __LINE__,
           fmt::format("{}({}, {}): got {}, expected {}", name, x[i], y[i], got[r * kCount + i], expected));
      break;
    }
  }
}

TEST(HostRuntimeLibrary, PerturbationFollowsTheSeedAlone) {
  const Operands operands = operandsFor(DType::f32);
  const auto results = [&](const Bench& bench) {
    return bench.run("fastRows", DType::f32, operands.x, operands.y, kCount, std::size(kRows) * kCount);
  };
  const auto first = results(perturbed());
  EXPECT(first == results(Bench({.workers = 1, .orderSeed = 7, .perturbsResults = true})));
  EXPECT(first != results(Bench({.orderSeed = 8, .perturbsResults = true})));
}

}  // namespace mnk::test
