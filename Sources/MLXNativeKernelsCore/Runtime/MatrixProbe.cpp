#include "Runtime/MatrixProbe.hpp"

#include <array>

#include "MLXNativeKernels/CommandEncoder.hpp"
#include "MLXNativeKernels/Tensor.hpp"
#include "Runtime/MatrixLayoutTypes.h"
#include "Support/Errors.hpp"

namespace mnk {

namespace {

constexpr uint32_t kLanes = 32;
using Findings = std::array<uint32_t, kLanes * kMatrixLayoutFindingsPerLane>;

Result<Findings> probe(const std::shared_ptr<Device>& device) {
  MNK_TRY(auto shape, Shape::make({kLanes, kMatrixLayoutFindingsPerLane}));
  MNK_TRY(auto found, Tensor::zeros(device, DType::u32, shape));
  Dispatch dispatch;
  dispatch.kind = "MatrixLayout";
  dispatch.kernel.function = "matrixLayoutProbe";
  dispatch.buffers.push_back(Binding::whole(kMatrixLayoutFound, found, Access::write));
  dispatch.grid = {.unit = Grid::Unit::threadgroups, .extent = {1, 1, 1}, .threadgroup = {kLanes, 1, 1}};
  CommandEncoder encoder(device, "matrix layout");
  MNK_TRY(encoder.dispatch(dispatch));
  MNK_TRY(auto committed, encoder.commit());
  MNK_TRY(committed.wait());
  Findings findings{};
  MNK_TRY(found.read(std::as_writable_bytes(std::span(findings))));
  return findings;
}

bool isLayout(const Findings& findings, uint32_t (*firstOf)(uint32_t lane)) {
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t* ofLane = &findings[lane * kMatrixLayoutFindingsPerLane];
    if (ofLane[kMatrixLayoutSecondIsNext] != 1 || ofLane[kMatrixLayoutFirst] != firstOf(lane)) return false;
  }
  return true;
}

}  // namespace

Result<MatrixLayout> probeMatrixLayout(const std::shared_ptr<Device>& device) {
  MNK_TRY(auto findings, guarded("Device", [&] { return probe(device); }));
  const auto rowMajor = [](uint32_t lane) { return 2 * lane; };
  const auto interleaved = [](uint32_t lane) {
    const uint32_t row = ((lane >> 1) & 3) | ((lane >> 2) & 4);
    return row * 8 + ((lane & 1) * 2 + ((lane >> 1) & 4));
  };
  if (isLayout(findings, rowMajor)) return MatrixLayout::rowMajor;
  return isLayout(findings, interleaved) ? MatrixLayout::interleaved : MatrixLayout::unknown;
}

}  // namespace mnk
