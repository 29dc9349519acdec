#include "MathProbe.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "Runtime/ProbeTypes.h"
#include "Support/Errors.hpp"

namespace mnk::metal {

namespace {

using Numbers = std::array<float, kMathProbePairs + 2 * kMathProbePairCount>;
using Found = std::array<float, kMathProbePairs + kMathProbePairCount>;

// The quotient of each pair differs from the product with the rounded reciprocal.
constexpr Numbers kNumbers{std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           3,
                           7,
                           3,
                           13,
                           5,
                           3,
                           5,
                           6,
                           3,
                           29,
                           5,
                           23,
                           3,
                           58,
                           5,
                           27};

std::optional<Found> probe(MTL::Device* device, MetalLibrary& library) {
  const auto native = library.nativeWith("mathProbe");
  const auto function = owned(native ? (*native)->newFunction(nsText("mathProbe")) : nullptr);
  NS::Error* error = nullptr;
  const auto pipeline = owned(function ? device->newComputePipelineState(function.get(), &error) : nullptr);
  const auto numbers = owned(device->newBuffer(&kNumbers, sizeof kNumbers, MTL::ResourceStorageModeShared));
  const auto results = owned(device->newBuffer(sizeof(Found), MTL::ResourceStorageModeShared));
  const auto queue = owned(device->newCommandQueue());
  MTL::CommandBuffer* const commands = queue ? queue->commandBuffer() : nullptr;
  MTL::ComputeCommandEncoder* const encoder = commands ? commands->computeCommandEncoder() : nullptr;
  if (!encoder) return std::nullopt;
  if (pipeline && numbers && results) {
    encoder->setComputePipelineState(pipeline.get());
    encoder->setBuffer(numbers.get(), 0, kMathProbeNumbers);
    encoder->setBuffer(results.get(), 0, kMathProbeFound);
    encoder->dispatchThreads(MTL::Size(1, 1, 1), MTL::Size(1, 1, 1));
  }
  encoder->endEncoding();
  if (!pipeline || !numbers || !results) return std::nullopt;
  commands->commit();
  commands->waitUntilCompleted();
  if (commands->status() != MTL::CommandBufferStatusCompleted) return std::nullopt;
  return *static_cast<const Found*>(results->contents());
}

}  // namespace

Result<bool> hasSafeMath(MTL::Device* device, MetalLibrary& library) {
  const AutoreleasePool pool;
  const auto found = probe(device, library);
  if (!found) {
    Error error = metalError(ErrorCode::deviceFault, "the compiled kernels cannot be probed",
                             fmt::format("no result of mathProbe in {}", library.origin().text()), "a GPU that runs it",
                             "Wait until the GPU can be used, and try again.");
    error.retryable = true;
    return error;
  }
  bool isSafe = (*found)[kMathProbeNaN] == 0 && std::isnan((*found)[kMathProbeInfinity]);
  for (size_t i = 0; i < kMathProbePairCount; ++i) {
    const float* const pair = &kNumbers[kMathProbePairs + 2 * i];
    isSafe = isSafe && (*found)[kMathProbePairs + i] == pair[0] / pair[1];
  }
  return isSafe;
}

}  // namespace mnk::metal
