#include "SoftMetal/SoftMetalFixture.hpp"

#include <fmt/ranges.h>

#include "Harness/Golden.hpp"

namespace mnk::test {

namespace {

constexpr GoldenText kViolations{
    "SoftMetal/Violations.inc",
#include "Violations.inc"
};

}  // namespace

NS::String* text(const char* characters) {
  return NS::String::string(characters, NS::UTF8StringEncoding);
}

std::string utf8(const NS::String* string) {
  return string->utf8String();
}

SoftMetalFixture::SoftMetalFixture(const softmetal::DeviceDescription& about, const char* note,
                                   std::source_location where)
    : key_(testAt(where) + note) {
  softmetal::reset();
  softmetal::machine() = {.devices = {about}};
  // Another device than those that other suites keep for the whole process.
  if (about == softmetal::DeviceDescription()) softmetal::machine().devices[0].families.push_back(0);
  start_ = softmetal::mark();
  pool_ = NS::AutoreleasePool::alloc()->init();
  device_ = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  queue_ = NS::TransferPtr(device_->newCommandQueue());
  const CacheFolder folder;
  const std::string path = folder.path();
  softmetal::writeMetallib(path, {.linked = "conformance", .text = {}, .added = {}, .hidden = {}});
  NS::Error* error = nullptr;
  library_ = NS::TransferPtr(device_->newLibrary(NS::URL::fileURLWithPath(text(path.c_str())), &error));
}

SoftMetalFixture::~SoftMetalFixture() {
  library_.reset();
  queue_.reset();
  device_.reset();
  pool_->release();
  softmetal::waitUntilIdle();
  softmetal::reportLeaks(start_);
  constexpr std::string_view kStep = "MTLComputeCommandEncoder 'step' of MTLCommandBuffer 'work': ";
  std::vector<std::string> lines;
  for (std::string violation : softmetal::takeViolations()) {
    if (violation.starts_with(kStep)) violation.replace(0, kStep.size(), "step: ");
    const bool isNext = lines.empty() || lines.back().size() + violation.size() > 280;
    if (isNext)
      lines.push_back(std::move(violation));
    else
      lines.back() += " // " + violation;
  }
  lines.emplace_back();  // there is no further line
  for (size_t i = 0; i < lines.size(); ++i) {
    expectGoldenLine(kViolations, fmt::format("{} {}", key_, i), lines[i]);
  }
  softmetal::reset();
}

NS::SharedPtr<MTL::Function> SoftMetalFixture::function(const char* name) const {
  return NS::TransferPtr(library_->newFunction(text(name)));
}

NS::SharedPtr<MTL::ComputePipelineState> SoftMetalFixture::pipeline(const char* name) const {
  const auto found = function(name);
  NS::Error* error = nullptr;
  auto pipeline = NS::TransferPtr(device_->newComputePipelineState(found.get(), &error));
  if (error) fail(__FILE__, __LINE__, error->localizedDescription()->utf8String());
  return pipeline;
}

NS::SharedPtr<MTL::Buffer> SoftMetalFixture::buffer(const char* label, size_t bytes) const {
  auto buffer = NS::TransferPtr(device_->newBuffer(bytes, MTL::ResourceStorageModeShared));
  buffer->setLabel(text(label));
  return buffer;
}

MTL::CommandBuffer* SoftMetalFixture::commandBuffer(const char* label) const {
  MTL::CommandBuffer* commands = queue_->commandBuffer();
  commands->setLabel(text(label));
  return commands;
}

MTL::ComputeCommandEncoder* SoftMetalFixture::encoder(MTL::CommandBuffer* commands, MTL::DispatchType type) const {
  MTL::ComputeCommandEncoder* encoder = commands->computeCommandEncoder(type);
  encoder->setLabel(text("step"));
  return encoder;
}

SoftMetalFixture::Copy SoftMetalFixture::copy(MTL::DispatchType type, MTL::CommandBuffer* commands) const {
  if (!commands) commands = commandBuffer();
  Copy copy{commands, encoder(commands, type), pipeline("copy16"), buffer("from", 64), buffer("to", 64)};
  copy.encoder->setComputePipelineState(copy.pipeline.get());
  copy.encoder->setBuffer(copy.from.get(), 0, 0);
  copy.encoder->setBuffer(copy.to.get(), 0, 1);
  return copy;
}

void SoftMetalFixture::Copy::finish() const {
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
}

void expectViolations(const char* file, int line, const std::vector<std::string_view>& parts) {
  const auto found = softmetal::takeViolations();
  bool fits = found.size() == parts.size();
  for (size_t i = 0; fits && i < parts.size(); ++i) fits = found[i].find(parts[i]) != std::string::npos;
  if (!fits)
    fail(file, line,
         fmt::format("violations\n  {}\nexpected\n  {}", fmt::join(found, "\n  "), fmt::join(parts, "\n  ")));
}

}  // namespace mnk::test
