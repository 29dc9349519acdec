#include "DecodeProblem.hpp"

#include <cmath>
#include <cstring>

#include "FlashDecode/FlashDecodeTypes.h"
#include "Timing.hpp"

namespace mnk::bench {

namespace {

Result<QuantizedKVPlane> makePlane(const std::shared_ptr<Device>& device, const DecodeCase& of, uint64_t headDim) {
  const KVCodec& codec = *of.storage.codec;
  auto row = sizes(codec, headDim);
  if (!row) return std::move(row).error();
  // Any byte is a valid code. The scales suit vectors with elements around one half.
  auto codes = makeFilled(device, DType::u8, {of.kvHeads, of.length, row->codeBytes}, 0, 256);
  if (!codes) return std::move(codes).error();
  const bool isNorm = codec.name == KVCodec::Name::mlx1 && row->scales == 1;
  const float size = isNorm ? 0.5f * std::sqrt(static_cast<float>(headDim)) : 0.5f;
  auto scales = row->scales == 1
                    ? makeFilled(device, codec.scaleType(), {of.kvHeads, of.length}, 0.8f * size, size)
                    : makeFilled(device, codec.scaleType(), {of.kvHeads, of.length, row->scales}, 0.8f * size, size);
  if (!scales) return std::move(scales).error();
  return QuantizedKVPlane{.codec = codec, .codes = *codes, .scales = *scales};
}

Result<void> makeCache(const std::shared_ptr<Device>& device, const DecodeCase& of, FlashDecode& op) {
  const auto latentDim = static_cast<uint32_t>(of.latentDim);
  if (of.storage.codec) {
    auto keys = makePlane(device, of, of.headDim);
    if (!keys) return std::move(keys).error();
    auto values = makePlane(device, of, of.valueDim());
    if (!values) return std::move(values).error();
    op.cache = QuantizedKVCacheView{.keys = *keys, .values = *values, .latentDim = latentDim};
    return {};
  }
  auto keys = makeFilled(device, DType::f16, {of.kvHeads, of.length, of.headDim}, -1, 1);
  if (!keys) return std::move(keys).error();
  auto values = makeFilled(device, DType::f16, {of.kvHeads, of.length, of.valueDim()}, -1, 1);
  if (!values) return std::move(values).error();
  op.cache = KVCacheView{.keys = *keys, .values = *values, .latentDim = latentDim};
  return {};
}

}  // namespace

Result<DecodeProblem> DecodeProblem::make(const std::shared_ptr<Device>& device, const DecodeCase& shape,
                                          uint32_t copies) {
  DecodeProblem problem{.device = device};
  auto queries = makeFilled(device, DType::f16, {shape.rows, shape.heads(), shape.queryDim()}, -3, 3);
  if (!queries) return std::move(queries).error();
  auto into = makeTensor(device, DType::f16, {shape.rows, shape.heads(), shape.valueDim()});
  if (!into) return std::move(into).error();
  for (uint32_t i = 0; i < copies; ++i) {
    FlashDecode op{.queries = *queries, .sequences = {{.length = shape.length}}, .results = {.output = *into}};
    op.options.scale = shape.scale();
    if (auto result = makeCache(device, shape, op); !result) return std::move(result).error();
    problem.ops.push_back(std::move(op));
  }
  return problem;
}

Result<std::vector<Plan>> DecodeProblem::plans(const AttentionOptions& options) const {
  std::vector<Plan> plans;
  for (FlashDecode op : ops) {
    const float scale = op.options.scale;
    op.options = options;
    op.options.scale = scale;
    auto planned = plan(op, *device);
    if (!planned) return std::move(planned).error();
    plans.push_back(std::move(*planned));
  }
  return plans;
}

ChosenWork ChosenWork::of(const Plan& plan) {
  ChosenWork work{.dispatches = plan.dispatches.size()};
  if (plan.dispatches.empty()) return work;
  const Dispatch& first = plan.dispatches.front();
  work.kernel = first.kernel.function;
  for (const InlineBytes& inlined : first.inlines) {
    if (inlined.index != kFlashDecodeParams || inlined.bytes.size() != sizeof(FlashDecodeParams)) continue;
    FlashDecodeParams params;
    std::memcpy(&params, inlined.bytes.data(), sizeof params);
    work.splits = params.splits;
  }
  return work;
}

}  // namespace mnk::bench
