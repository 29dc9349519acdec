#include "MetalFixture.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/ranges.h>

#include "Shipped/ShippedKernels.hpp"

namespace mnk::test {

namespace {

// A Mac takes about 30 ms for each: then no test takes it longer than 18 s.
constexpr uint64_t kMostPipelines = 600;

// Whatever a test did, Metal must not have had a reason to complain.
const AfterEachTest noViolations([] {
  softmetal::waitUntilIdle();
  std::vector<std::string> mistakes = softmetal::takeViolations();
  for (std::string& mistake : mistakes) mistake = "software Metal: " + mistake;
  static uint64_t before = 0;
  const uint64_t made = softmetal::pipelinesMade() - std::exchange(before, softmetal::pipelinesMade());
  if (made > kMostPipelines) {
    mistakes.push_back(fmt::format("{} Metal pipelines were made; a test may make {}", made, kMostPipelines));
  }
  return mistakes;
});

// Writes which selectors the tests of a program sent, and which the software Metal implements, into the file that
// MNK_SELECTORS names. Tests/Packaging/test-selectors.sh compares them with those that the Metal device uses.
const AfterEachTest writeSelectors([]() -> std::vector<std::string> {
  const char* path = std::getenv("MNK_SELECTORS");
  if (!path) return {};
  std::ofstream file(path);
  for (const std::string& selector : softmetal::selectorsSent()) file << "sent " << selector << '\n';
  for (const std::string& selector : softmetal::selectorsImplemented()) file << "implemented " << selector << '\n';
  return {};
});

}  // namespace

MetalFixture::MetalFixture(std::source_location where) : where_(where) {
  softmetal::reset();
  softmetal::machine() = {};  // whichever the environment names
  std::string pattern = (std::filesystem::temp_directory_path() / "mnk-metal-XXXXXX").string();
  folder_ = mkdtemp(pattern.data()) ? pattern : "";
  shippedLibrary_ = path("shipped.metallib");
  if (folder_.empty() || !softmetal::writeMetallib(shippedLibrary_, {.linked = "MLXNativeKernels"})) {
    fail(where.file_name(), static_cast<int>(where.line()), "no temporary folder can be had");
    throw Stop{};
  }
  begin_ = softmetal::mark();
}

MetalFixture::~MetalFixture() {
  softmetal::faults().releaseWork();
  softmetal::faults().releaseHandlers();
  softmetal::waitUntilIdle();
  for (const std::string& object : softmetal::liveObjectsSince(begin_)) {
    fail(where_.file_name(), static_cast<int>(where_.line()), "left alive: " + object);
  }
  const auto violations = softmetal::takeViolations();
  softmetal::reset();
  for (const std::string& mistake : violations) {
    fail(where_.file_name(), static_cast<int>(where_.line()), "software Metal: " + mistake);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::shared_ptr<Device> MetalFixture::makeDevice(metal::Options options) const {
  if (options.libraryPath.empty()) options.libraryPath = shippedLibrary_;
  auto device = REQUIRE(metal::makeDevice(options));
  // A device probes the math of its library when it loads it, which tests do not count, hold or let fail.
  if (options.libraryPath == shippedLibrary_) {
    REQUIRE(device->registry().shippedLibrary());
    softmetal::clearCounters();
  }
  return device;
}

Tensor makeTensor(const std::shared_ptr<Device>& device, const std::vector<float>& values) {
  const Tensor made = REQUIRE(Tensor::zeros(device, DType::f32, REQUIRE(Shape::make({values.size()}))));
  REQUIRE(made.write(std::as_bytes(std::span(values))));
  return made;
}

Tensor makeUntracked(const std::shared_ptr<Device>& device) {
  const AutoreleasePool pool;
  const auto native = NS::TransferPtr(metal::nativeDevice(device)->newBuffer(
      16, MTL::ResourceStorageModeShared | MTL::ResourceHazardTrackingModeUntracked));
  return REQUIRE(
      Tensor::over(REQUIRE(metal::wrapBuffer(device, native.get())), DType::f32, REQUIRE(Shape::make({1, 4, 1})), 0));
}

std::vector<float> readTensor(const Tensor& tensor) {
  std::vector<float> values(tensor.shape().elementCount());
  REQUIRE(tensor.read(std::as_writable_bytes(std::span(values))));
  return values;
}

std::string traceText() {
  return fmt::format("{}", fmt::join(softmetal::trace(), "; "));
}

NS::SharedPtr<MTL::CommandBuffer> appCommandBuffer(const std::shared_ptr<Device>& device) {
  return NS::RetainPtr(metal::nativeQueue(device)->commandBuffer());
}

Completion commitInto(const std::shared_ptr<Device>& device, MTL::CommandBuffer* commands, const CopyFixture& copy,
                      const char* label) {
  CommandEncoder encoder(device, REQUIRE(metal::makeSubmission(device, commands, label)));
  REQUIRE(encoder.encode(copy.write));
  return REQUIRE(encoder.commit());
}

CopyFixture::CopyFixture(const std::shared_ptr<Device>& device, uint64_t count) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) + 1;
  in = makeTensor(device, values);
  out = makeTensor(device, std::vector<float>(count));
  const Shape shape = REQUIRE(Shape::make({1, count, 1}));
  write = {.keys = REQUIRE(in.reshaped(shape)),
           .sourceLayout = KVLayout::headMajor,
           .into = {.keys = REQUIRE(out.reshaped(shape))}};
}

void CopyFixture::expectCopied(std::source_location where) const {
  expectEqual(where.file_name(), static_cast<int>(where.line()), "out",
              fmt::format("{}", fmt::join(readTensor(out), " ")), fmt::format("{}", fmt::join(readTensor(in), " ")));
}

void CopyFixture::expectUntouched(std::source_location where) const {
  // Unchecked: a read would report that the work failed, or that it has not started.
  const auto* values = reinterpret_cast<const float*>(out.buffer()->contents() + out.byteOffset());
  for (uint64_t i = 0; i < out.shape().elementCount(); ++i) {
    expectEqual(where.file_name(), static_cast<int>(where.line()), "out", values[i], 0.f);
  }
}

}  // namespace mnk::test
