#include <atomic>

#include "Devices/Metal/MetalSupport.hpp"
#include "MetalFixture.hpp"
#include "Support/Errors.hpp"

namespace mnk::test {

namespace {

struct CodeCase {
  int64_t metal;
  ErrorCode code;
  bool retryable;
  std::string_view name, what;
};
constexpr CodeCase kCodes[] = {
    {1, ErrorCode::deviceFault, false, "internal error (1)", "the GPU failed"},
    {2, ErrorCode::timeout, true, "timeout (2)", "took too long"},
    {3, ErrorCode::pageFault, false, "page fault (3)", "memory that is not its own"},
    {4, ErrorCode::deviceLost, false, "access revoked (4)", "takes no more GPU work"},
    {7, ErrorCode::notPermitted, true, "not permitted (7)", "forbids GPU work"},
    {8, ErrorCode::outOfMemory, true, "out of memory (8)", "too little memory"},
    {9, ErrorCode::deviceFault, false, "invalid resource (9)", "a buffer was gone"},
    {10, ErrorCode::deviceFault, false, "memoryless (10)", "memoryless storage"},
    {11, ErrorCode::deviceLost, false, "device removed (11)", "taken away"},
    {12, ErrorCode::deviceFault, false, "stack overflow (12)", "more stack"},
    {99, ErrorCode::deviceFault, false, "unknown error (99)", "the GPU failed"},
};

// Commits a copy; the error that `finished` hears of is kept too.
struct Submitted {
  CopyFixture copy;
  std::shared_ptr<std::atomic<int>> calls = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::optional<Error>> heard = std::make_shared<std::optional<Error>>();
  Completion done;

  explicit Submitted(const std::shared_ptr<Device>& device) : copy(device) {
    CommandEncoder encoder(device, "token 3");
    REQUIRE(encoder.encode(copy.write));
    done = REQUIRE(encoder.commit([calls = calls, heard = heard](const Result<Summary>& result) {
      if (!result) *heard = result.error();
      ++*calls;
    }));
  }
};

// A copy from nothing to its end, in which every call may fail.
Result<void> copyOnce(const std::string& library) {
  const Shape shape = REQUIRE(Shape::make({1, 4, 1}));
  MNK_TRY(auto device, metal::makeDevice({.libraryPath = library}));
  MNK_TRY(auto in, Tensor::zeros(device, DType::f32, shape));
  MNK_TRY(auto out, Tensor::zeros(device, DType::f32, shape));
  CommandEncoder encoder(device);
  MNK_TRY(encoder.encode(KVCacheWrite{.keys = in, .sourceLayout = KVLayout::headMajor, .into = {.keys = out}}));
  MNK_TRY(auto done, encoder.commit());
  MNK_TRY(done.wait());
  return {};
}

}  // namespace

TEST(MetalFailure, EveryCodeOfACommandBufferIsATypedErrorForWaitersAndHandlers) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  for (const CodeCase& one : kCodes) {
    for (const auto when : {softmetal::When::before, softmetal::When::after}) {
      const Context context(fmt::format("code {}", one.metal));
      softmetal::faults().failCommandBuffer(0, one.metal, when);
      const Submitted submitted(device);
      const auto waited = submitted.done.wait();
      EXPECT_ERROR(waited, {.code = one.code, .op = "Metal device", .what = one.what, .got = one.name});
      softmetal::waitUntilIdle();
      EXPECT_EQ(submitted.calls->load(), 1);
      if (waited || !*submitted.heard) continue;
      EXPECT_EQ(waited.error().retryable, one.retryable);
      EXPECT(waited.error().what.ends_with(" in 'token 3'"));
      EXPECT(!waited.error().expected.empty() && !waited.error().fix.empty());
      EXPECT_EQ((*submitted.heard)->message(), waited.error().message());
    }
  }
  const Submitted after(device);
  REQUIRE(after.done.wait());
  after.copy.expectCopied();
}

TEST(MetalFailure, ALostDeviceFailsEverythingAfterIt) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  CommandEncoder encoder(device);
  REQUIRE(encoder.encode(copy.write));
  softmetal::faults().loseDevice();
  const auto waited = REQUIRE(encoder.commit()).wait();
  EXPECT_ERROR(waited, {.code = ErrorCode::deviceLost, .what = "taken away", .fix = "another GPU"});
  EXPECT(!waited && !waited.error().retryable);
  EXPECT_ERROR(device->makeBuffer(16), {.code = ErrorCode::outOfMemory});
  copy.expectUntouched();
}

TEST(MetalFailure, WithoutACommandBufferOrEncoderNothingIsCommitted) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  const CopyFixture copy(device);
  CommandEncoder encoder(device, "token 3");
  REQUIRE(encoder.encode(copy.write));
  int calls = 0;
  for (const auto call : {softmetal::Call::commandBuffer, softmetal::Call::encoder}) {
    softmetal::faults().failAt(call);
    const auto committed = encoder.commit([&](const Result<Summary>&) { ++calls; });
    EXPECT_ERROR(committed, {.code = ErrorCode::deviceFault,
                             .what = call == softmetal::Call::encoder ? "Metal returned no command encoder"
                                                                      : "Metal returned no command buffer",
                             .got = "none for 'token 3'",
                             .fix = "try again"});
    EXPECT(!committed && committed.error().retryable);
    EXPECT_EQ(calls, 0);
    copy.expectUntouched();
  }
  REQUIRE(REQUIRE(encoder.commit()).wait());
}

TEST(MetalFailure, ALateHandlerIsWaitedFor) {
  MetalFixture fixture;
  const auto device = fixture.makeDevice();
  softmetal::waitUntilIdle();  // the probe of the new device would be held before the first
  softmetal::faults().holdHandlers();
  const Submitted first(device), second(device);
  softmetal::waitUntilIdle();
  EXPECT(!first.done.isDone());
  EXPECT_EQ(first.calls->load(), 0);
  EXPECT_EQ(softmetal::faults().releaseHandlers(1), 1u);
  REQUIRE(first.done.wait());
  first.copy.expectCopied();
  EXPECT(!second.done.isDone());
  EXPECT_EQ(softmetal::faults().releaseHandlers(), 1u);
  REQUIRE(second.done.wait());
  EXPECT_EQ(first.calls->load() + second.calls->load(), 2);
}

TEST(MetalFailure, AllocationsMayFailAnywhereWithoutALeak) {
  // Every n-th buffer, queue, command buffer, encoder, library, function and pipeline in turn.
  MetalFixture fixture;
  for (const auto call :
       {softmetal::Call::buffer, softmetal::Call::commandQueue, softmetal::Call::commandBuffer,
        softmetal::Call::encoder, softmetal::Call::library, softmetal::Call::function, softmetal::Call::pipeline}) {
    int failures = 0;
    for (uint32_t skip = 0; skip < 4; ++skip) {
      softmetal::faults().failAt(call, skip);
      if (auto copied = copyOnce(fixture.shippedLibrary()); !copied) {
        EXPECT(!copied.error().what.empty() && !copied.error().fix.empty());
        ++failures;
      }
    }
    EXPECT(failures > 0);
    softmetal::waitUntilIdle();
    for (const std::string& mistake : softmetal::takeViolations()) fail(__FILE__, __LINE__, mistake);
    softmetal::reset();
  }
}

TEST(MetalFailure, AnErrorOfAnotherDomainIsNotTakenForACode) {
  MetalFixture fixture;
  const AutoreleasePool pool;
  const auto made = [](const char* domain) {
    return metal::commandBufferError(NS::Error::error(metal::nsText(domain), 2, nullptr), "");
  };
  EXPECT_EQ(made("MTLCommandBufferErrorDomain").code, ErrorCode::timeout);
  EXPECT_EQ(made("NSPOSIXErrorDomain").code, ErrorCode::deviceFault);
  EXPECT(made("NSPOSIXErrorDomain").got.starts_with("unknown error (2)"));
  EXPECT_EQ(metal::commandBufferError(nullptr, "").code, ErrorCode::deviceFault);
}

}  // namespace mnk::test
