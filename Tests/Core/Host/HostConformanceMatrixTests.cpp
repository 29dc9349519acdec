// Results of kernels in Tests/Shaders/ConformanceMatrix.metal, compared with products in double, and findings of full
// checking in the faults seeded there.
#include <cmath>
#include <set>

#include "Harness/Seeded.hpp"
#include "Harness/SoftFloat.hpp"
#include "HostOptions.hpp"
#include "HostTestSupport.hpp"
#include "Runtime/ProbeTypes.h"

using namespace mnk;
using namespace mnk::test;

namespace {

// Also runs with full checking, and with the perturbed layout and order of sums.
void onEveryMatrixHost(const std::function<void(const std::shared_ptr<Device>&)>& body) {
  onEveryHost(body);
  for (const bool perturb : {false, true}) {
    for (const uint64_t order : {0, 5}) {
      const Context context(fmt::format("full checking, perturbed {}, order {}", perturb, order));
      body(hostDevice({.orderSeed = order, .checking = HostOptions::Checking::full, .perturbsResults = perturb}));
    }
  }
}

Grid simdgroups(uint32_t count) {
  return threads(32 * count, 32 * count);
}

const char* nameOf(DType dtype) {
  return dtype == DType::f16 ? "half" : dtype == DType::bf16 ? "bfloat" : "float";
}

// Row * 8 + column of a lane's first element. Metal does not report which of the two layouts a device uses; lane 2
// starts at index 4 only in the perturbed one.
uint32_t firstIndex(uint32_t lane, bool isPerturbed) {
  return isPerturbed ? lane * 2 : (lane / 16 * 4 + lane / 2 % 4) * 8 + lane / 8 % 2 * 4 + lane % 2 * 2;
}

// Numbers of a dtype, as a kernel reads them and exactly.
struct Elements {
  std::vector<std::byte> bytes;
  std::vector<double> values;

  Elements(DType dtype, const std::vector<double>& from)
      : bytes(bytesOfValues(dtype, from)), values(valuesOf(dtype, bytes)) {}
};

constexpr uint32_t kMatrices = 3;  // simdgroups in a threadgroup
constexpr double kUnit = 0x1p-24;  // half of the distance from 1 to the next float

struct Sum {
  double value, size;  // size: the sum of the terms' magnitudes
};

Sum product(const double* a, const double* b, uint32_t row, uint32_t column) {
  Sum sum{};
  for (uint32_t k = 0; k < 8; ++k) {
    const double term = a[row * 8 + k] * b[k * 8 + column];
    sum.value += term;
    sum.size += std::abs(term);
  }
  return sum;
}

// Eight terms and the addend are rounded at most nine times, products of float once more.
void expectSum(double got, double onto, const Sum& terms, double times, bool isExact, const std::string& what) {
  const double expected = onto + times * terms.value;
  const double allowed = isExact ? 0 : 10 * times * kUnit * (1 + 32 * kUnit) * (times * terms.size + std::abs(onto));
  if (!(std::abs(got - expected) <= allowed)) {
    fail(__FILE__, __LINE__, fmt::format("{}: got {}, expected {} within {}", what, got, expected, allowed));
  }
}

void expectProducts(const std::shared_ptr<Device>& device, DType dtype, bool isExact) {
  const Context context(fmt::format("{}, {}", nameOf(dtype), isExact ? "whole numbers" : "any numbers"));
  Seeded random(static_cast<uint64_t>(dtype) * 2 + isExact);
  const auto draw = [&] {
    std::vector<double> values(kMatrices * 64);
    for (double& value : values) {
      value = static_cast<double>(random.below(33)) - 16;
      if (!isExact) value += static_cast<double>(random.below(1u << 20)) * 0x1p-20;
    }
    return values;
  };
  Elements a(dtype, draw()), b(dtype, draw()), c(DType::f32, draw());
  std::vector<float> out(kMatrices * 256);
  REQUIRE(runOn(device, {.function = fmt::format("matrixProducts_{}", nameOf(dtype)),
                         .grid = simdgroups(kMatrices),
                         .buffers = {a.bytes, b.bytes, c.bytes, bytesOf(out)}}));
  for (uint32_t i = 0; i < kMatrices * 64; ++i) {
    const uint32_t matrix = i / 64, row = i / 8 % 8, column = i % 8;
    const std::string place = fmt::format("matrix {}, row {}, column {}", matrix, row, column);
    const float* got = out.data() + matrix * 256 + i % 64;
    const double *x = a.values.data() + matrix * 64, *y = b.values.data() + matrix * 64;
    const Sum both = product(x, y, row, column);
    expectSum(got[0], 0, both, 1, isExact, "A B, " + place);
    expectSum(got[64], c.values[i], both, 1, isExact, "A B + C, " + place);
    expectSum(got[128], c.values[i], both, 1, isExact, "C += A B, " + place);
    expectSum(got[192], 3, product(x, x, row, column), 2, isExact, "3 + 2 A A, " + place);
  }
}

}  // namespace

TEST(HostMatrix, LanesHoldNeighborsOfARow) {
  std::vector<float> rows(8 * 11);
  for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  onEveryMatrixHost([&](const auto& device) {
    std::vector<float> out(128, -1);
    REQUIRE(
        runOn(device, {.function = "matrixPlaces", .grid = simdgroups(2), .buffers = {bytesOf(rows), bytesOf(out)}}));
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t first = firstIndex(i % 32, out[2 * 2] == 4);
      EXPECT_EQ(out[2 * i], static_cast<float>(first / 8 * 11 + first % 8));
      EXPECT_EQ(out[2 * i + 1], out[2 * i] + 1);
    }
  });
}

TEST(HostMatrix, ShippedProbeReportsTheLayout) {
  onEveryMatrixHost([&](const auto& device) {
    std::vector<uint32_t> found(64, 99);
    REQUIRE(runOn(device, {.function = "matrixLayoutProbe", .grid = simdgroups(1), .buffers = {bytesOf(found)}},
                  REQUIRE(device->registry().shippedLibrary())));
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const uint32_t* mine = found.data() + lane * kMatrixLayoutFindingsPerLane;
      EXPECT_EQ(mine[kMatrixLayoutFirst], firstIndex(lane, found[2 * kMatrixLayoutFindingsPerLane] == 4));
      EXPECT_EQ(mine[kMatrixLayoutSecondIsNext], 1u);
    }
  });
}

TEST(HostMatrix, PerturbationChangesTheLayout) {
  for (const bool perturb : {false, true}) {
    const HostOptions options{.perturbsResults = perturb};
    std::vector<float> rows(8 * 11), out(64, -1);
    for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
    REQUIRE(runOn(hostDevice(options),
                  {.function = "matrixPlaces", .grid = simdgroups(1), .buffers = {bytesOf(rows), bytesOf(out)}}));
    EXPECT_EQ(out[2 * 2], REQUIRE(host::resolve(options)).perturbsResults ? 4.0f : 11.0f);
  }
}

TEST(HostMatrix, LoadsAndStoresAccessOnlyTheirRows) {
  onEveryMatrixHost([](const auto& device) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      const Context context(nameOf(dtype));
      std::vector<double> numbers(2 * 8 * 9), untouched(2 * 8 * 10, -1);
      for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
      Elements from(dtype, numbers), into(dtype, untouched);
      REQUIRE(runOn(device, {.function = fmt::format("matrixRoundTrip_{}", nameOf(dtype)),
                             .grid = simdgroups(2),
                             .buffers = {from.bytes, into.bytes}}));
      const std::vector<double> got = valuesOf(dtype, into.bytes);
      for (uint32_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i], i % 10 < 8 ? i / 10 * 9 + i % 10 + 1.0 : -1.0);
      }
    }
  });
}

TEST(HostMatrix, ProductsOfWholeNumbersAreExactAndOthersAreRoundedInSums) {
  onEveryMatrixHost([](const auto& device) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
      for (const bool isExact : {true, false}) expectProducts(device, dtype, isExact);
    }
  });
}

TEST(HostMatrix, PerturbationChangesTheOrderOfSums) {
  Seeded random(7);
  std::vector<float> a(64), b(64), c(64);
  for (auto* values : {&a, &b, &c}) {
    for (float& value : *values) value = static_cast<float>(random.below(1u << 24)) * 0x1p-20f - 8;
  }
  for (const bool perturb : {false, true}) {
    std::set<std::vector<float>> results;
    bool isPerturbed = false;
    for (const uint64_t order : {1, 2, 3, 4}) {
      const HostOptions options{.orderSeed = order, .perturbsResults = perturb};
      isPerturbed |= REQUIRE(host::resolve(options)).perturbsResults;
      std::vector<float> out(256);
      REQUIRE(runOn(hostDevice(options), {.function = "matrixProducts_float",
                                          .grid = simdgroups(1),
                                          .buffers = {bytesOf(a), bytesOf(b), bytesOf(c), bytesOf(out)}}));
      results.insert(out);
    }
    EXPECT_EQ(results.size() > 1, isPerturbed);
  }
}

TEST(HostMatrix, FullCheckingFindsSeededFaults) {
  const struct {
    const char *function, *found;
    size_t elements;
  } kSeededFaults[] = {
      {"faultProductOfFewLanes", "lane 30 does not take part in a function of matrices, which needs all 32", 32},
      {"faultProductInDivergentCode", "lanes of a simdgroup wait at different places: ", 32},
      {"faultMatrixOfManyAddresses", "lanes give different addresses or rows of one matrix", 160},
      {"faultMatrixPastBuffer", " bytes outside of buffer 0 + ", 64},
      {"faultMatrixWithoutBarrier", "no simdgroup_barrier(mem_threadgroup) between threadgroup 0 simdgroup 0 lane", 32},
  };
  for (const bool perturb : {false, true}) {
    for (const uint64_t order : {0, 1, 2, 3}) {
      const auto device =
          hostDevice({.orderSeed = order, .checking = HostOptions::Checking::full, .perturbsResults = perturb});
      for (const auto& fault : kSeededFaults) {
        const Context context(fmt::format("{}, perturbed {}, order {}", fault.function, perturb, order));
        std::vector<float> data(fault.elements);
        EXPECT_ERROR(runOn(device, {.function = fault.function, .grid = simdgroups(1), .buffers = {bytesOf(data)}}),
                     {.code = ErrorCode::deviceFault, .got = fault.found});
      }
    }
  }
}

TEST(HostMatrix, AProductWithoutAllLanesIsNaN) {
  onEveryHost([](const auto& device) {
    std::vector<float> data(32);
    const auto outcome =
        runOn(device, {.function = "faultProductOfFewLanes", .grid = simdgroups(1), .buffers = {bytesOf(data)}});
    for (uint32_t lane = 0; outcome && lane < 30; ++lane) EXPECT(std::isnan(data[lane]));
  });
}
