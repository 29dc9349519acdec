#include "SoftMetal/SoftMetalFixture.hpp"

#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>

namespace mnk::test {

NS::String* text(const char* characters) {
  return NS::String::string(characters, NS::UTF8StringEncoding);
}

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "softmetal-XXXXXX").string();
  path_ = mkdtemp(name.data());
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

SoftMetalFixture::SoftMetalFixture(const softmetal::DeviceDescription& about) {
  softmetal::reset();
  softmetal::machine() = {.devices = {about}};
  // Another device than those that other suites keep for the whole process.
  if (about == softmetal::DeviceDescription()) softmetal::machine().devices[0].recommendedMaxWorkingSetSize += 1;
  start_ = softmetal::mark();
  pool_ = NS::AutoreleasePool::alloc()->init();
  device_ = NS::TransferPtr(MTL::CreateSystemDefaultDevice());
  queue_ = NS::TransferPtr(device_->newCommandQueue());
  const Folder folder;
  const std::string path = folder.path("conformance.metallib");
  softmetal::writeMetallib(path, {.linked = "conformance", .text = {}, .added = {}, .hidden = {}});
  NS::Error* error = nullptr;
  library_ = NS::TransferPtr(device_->newLibrary(NS::URL::fileURLWithPath(text(path.c_str())), &error));
}

SoftMetalFixture::~SoftMetalFixture() {
  library_.reset();
  queue_.reset();
  device_.reset();
  pool_->drain();
  softmetal::waitUntilIdle();
  softmetal::reportLeaks(start_);
  for (const std::string& sentence : softmetal::takeViolations()) fail(__FILE__, __LINE__, "left over: " + sentence);
  softmetal::reset();
}

NS::SharedPtr<MTL::ComputePipelineState> SoftMetalFixture::pipeline(const char* function) const {
  const auto found = NS::TransferPtr(library_->newFunction(text(function)));
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

SoftMetalFixture::Copy SoftMetalFixture::copy(MTL::DispatchType type) const {
  MTL::CommandBuffer* commands = commandBuffer();
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
