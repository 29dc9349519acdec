// Races that tests reach only through the tracker: between the end of work on a device and its report.
#include "Runtime/WorkInFlight.hpp"

#include "Harness/Check.hpp"
#include "Harness/FakeDevice.hpp"

namespace mnk::test {

namespace {

MemoryRange rangeAt(uint64_t begin) {
  return {nullptr, begin, begin + 64};
}
Touched touchedAt(uint64_t begin, bool isWrite) {
  return {.region = {.offset = begin, .rowBytes = 64, .rowStride = 64}, .isWrite = isWrite, .isWhole = isWrite};
}

}  // namespace

// A device releases memory before it reports a failure, so another buffer may already use that memory.
TEST(MemoryTracker, AFailureDoesNotAffectNewerMemory) {
  LiveMemory before;
  before.begin(rangeAt(4096));
  SubmittedWork work({});
  std::vector<Touched> touched{touchedAt(4096, true)};
  OpenStep none;
  work.submit(touched, none);
  before.end();
  LiveMemory after;
  after.begin(rangeAt(4096));
  EXPECT(!work.settle(fakeFailure()));
  work.retire();
  REQUIRE(MemoryTracker::shared().waitToRead(rangeAt(4096)));
}

// The app's handler may run before the library's and read the results of work whose inputs failed.
TEST(MemoryTracker, FinishedWorkWithFailedInputsHasFailed) {
  LiveMemory input, output;
  input.begin(rangeAt(8192));
  output.begin(rangeAt(12288));
  SubmittedWork failing({}), dependent([] { return WorkProgress::done; });
  std::vector<Touched> written{touchedAt(8192, true)}, both{touchedAt(8192, false), touchedAt(12288, true)};
  OpenStep none;
  failing.submit(written, none);
  dependent.submit(both, none);
  EXPECT(!failing.settle(fakeFailure()));
  failing.retire();
  EXPECT_ERROR(MemoryTracker::shared().waitToRead(rangeAt(12288)), {.code = ErrorCode::deviceFault});
  EXPECT(!dependent.settle({}));
  dependent.retire();
}

}  // namespace mnk::test
