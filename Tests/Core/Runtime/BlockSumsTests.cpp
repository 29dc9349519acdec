// Checks the kernel whose barriers `make proof` removes against sums in double.
#include <cmath>

#include "Harness/Seeded.hpp"
#include "Host/HostTestSupport.hpp"

using namespace mnk;
using namespace mnk::test;

TEST(BlockSums, AreCorrectInEveryOrder) {
  onEveryHost([](const auto& device) {
    for (const auto& [rows, columns] :
         {std::pair{1u, 32u}, std::pair{31u, 64u}, std::pair{33u, 32u}, std::pair{96u, 96u}, std::pair{65u, 70u}}) {
      const Context context(fmt::format("{} x {}", rows, columns));
      Seeded random(rows * 1000 + columns);
      std::vector<float> matrix(rows * columns);
      for (float& value : matrix) value = static_cast<float>(random.below(2000)) / 16.0f - 60.0f;
      const uint32_t threadgroups = (columns + 31) / 32;
      std::vector<float> sums(threadgroups * 32), groups(threadgroups * 32);
      std::vector<uint32_t> size = {rows, columns};
      REQUIRE(runOn(device, {.function = "blockSums",
                             .grid = {Grid::Unit::threadgroups, {threadgroups, 1, 1}, {128, 1, 1}},
                             .buffers = {bytesOf(matrix), bytesOf(sums), bytesOf(groups), bytesOf(size)}}));
      std::vector<double> expected(sums.size());
      for (uint32_t row = 0; row < rows; ++row) {
        for (uint32_t column = 0; column < columns; ++column) expected[column] += matrix[row * columns + column];
      }
      for (uint32_t c = 0; c < columns; ++c) {
        const uint32_t first = c / 4 * 4;
        const double group = expected[first] + expected[first + 1] + expected[first + 2] + expected[first + 3];
        EXPECT(std::abs(sums[c] - expected[c]) <= 1e-3);
        EXPECT(std::abs(groups[c] - group) <= 4e-3);
      }
    }
  });
}
