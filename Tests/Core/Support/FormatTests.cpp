#include "Support/Errors.hpp"

#include "Harness/Check.hpp"
#include "MLXNativeKernels/CommandEncoder.hpp"

namespace mnk::test {

// Units change before a number is rounded to a thousand of them.
TEST(Format, NumbersHaveUnitsAndNouns) {
  const std::pair<uint64_t, std::string_view> bytes[] = {{0, "0 bytes"},          {1, "1 byte"},
                                                         {999, "999 bytes"},      {1000, "1.0 KB"},
                                                         {8192, "8.2 KB"},        {999'949, "999.9 KB"},
                                                         {999'950, "1.0 MB"},     {999'949'999, "999.9 MB"},
                                                         {999'950'000, "1.0 GB"}, {UINT64_MAX, "18446744073.7 GB"}};
  for (const auto& [number, text] : bytes) EXPECT_EQ(bytesText(number), text);
  const std::pair<double, std::string_view> seconds[] = {
      {0, "0 µs"},         {41e-6, "41 µs"},      {999.4e-6, "999 µs"}, {999.6e-6, "1.0 ms"},
      {3.24e-3, "3.2 ms"}, {0.99994, "999.9 ms"}, {0.99996, "1.00 s"},  {2.5, "2.50 s"}};
  for (const auto& [number, text] : seconds) EXPECT_EQ(secondsText(number), text);
  const std::tuple<uint64_t, std::string_view, std::string_view> counts[] = {{0, "barrier", "0 barriers"},
                                                                             {1, "barrier", "1 barrier"},
                                                                             {2, "barrier", "2 barriers"},
                                                                             {1, "dispatch", "1 dispatch"},
                                                                             {3, "dispatch", "3 dispatches"}};
  for (const auto& [number, noun, text] : counts) EXPECT_EQ(countText(number, noun), text);
}

TEST(Format, SummaryIsOneLineWithTimeIfKnown) {
  Summary summary;
  summary.total = {.dispatches = 4, .bytesRead = 1'100'000, .bytesWritten = 8000};
  summary.barriers = 1;
  EXPECT_EQ(summary.text(), "4 dispatches, 1 barrier, 1.1 MB read, 8.0 KB written");
  summary.deviceSeconds = 41e-6;
  EXPECT_EQ(summary.text(), "4 dispatches, 1 barrier, 1.1 MB read, 8.0 KB written, 41 µs");
}

TEST(Format, DispatchAndPlanDescribeTheWork) {
  Dispatch dispatch;
  dispatch.kernel = {
      .library = nullptr, .function = "twist", .constants = {{90, true}, {91, -4}, {92, 7u}, {93, 0.5f}}};
  dispatch.grid.extent = {64, 2, 1};
  dispatch.buffers = {{.index = 0,
                       .buffer = nullptr,
                       .offset = 0,
                       .length = 256,
                       .reads = {{.offset = 0, .rowBytes = 32, .rowStride = 64, .rows = 4}},
                       .writes = {{.offset = 32, .rowBytes = 32, .rowStride = 64, .rows = 2}}}};
  EXPECT_EQ(dispatch.text(),
            "twist {90: true, 91: -4, 92: 7, 93: 0.5}: 64 x 2 x 1 threads, 128 bytes read, 64 bytes written");
  dispatch.bytesRead = 5;
  dispatch.bytesWritten = 0;
  dispatch.kernel.constants.clear();
  dispatch.grid.unit = Grid::Unit::threadgroups;
  EXPECT_EQ(dispatch.text(), "twist: 64 x 2 x 1 threadgroups, 5 bytes read, 0 bytes written");
  EXPECT_EQ((Plan{.op = "Twist", .dispatches = {dispatch}, .scratchBytes = 2000}.text()),
            "Twist: 1 dispatch, 2.0 KB of scratch memory\n  " + dispatch.text());
  EXPECT_EQ((Plan{.op = "Twist", .dispatches = {}}.text()), "Twist: 0 dispatches");
}

}  // namespace mnk::test
