#include "Decode.hpp"
#include "Timing.hpp"

namespace mnk::bench {

std::string nameOf(const Storage& storage) {
  if (!storage) return "f16";
  return (storage->name == KVCodec::Name::turbo ? "turbo" : "mlx1-") + std::to_string(storage->bits);
}

std::vector<Storage> allStorages() {
  std::vector<Storage> storages = {{}};
  for (uint32_t bits = 2; bits <= 8; ++bits) storages.push_back(KVCodec{.bits = bits});
  storages.push_back(KVCodec{.name = KVCodec::Name::mlx1, .bits = 4});
  return storages;
}

uint64_t DecodeCase::bytes() const {
  const auto vectorBytes = [&](uint64_t dim) {
    return storage ? need(sizes(*storage, dim)).byteCount() : dim * byteSize(DType::f16);
  };
  return kvHeads * length * (vectorBytes(headDim) + vectorBytes(valueDim())) +
         rows * heads() * (queryDim() + valueDim()) * byteSize(DType::f16);
}

uint64_t DecodeCase::operations() const {
  const uint64_t seen = rows * (length - rows) + rows * (rows + 1) / 2;  // keys of all rows
  return 2 * heads() * (queryDim() + valueDim()) * seen;
}

std::vector<DecodeCase> Axes::cases() const {
  std::vector<DecodeCase> cases;
  for (const uint64_t headDim : headDims) {
    for (const uint64_t group : groups) {
      for (const Storage& storage : storages) {
        if (storage && !storage->canQuantize(headDim)) continue;
        for (const uint64_t length : lengths) {
          cases.push_back({storage, kvHeads, group, headDim, length, rows, latentDim});
        }
      }
    }
  }
  return cases;
}

std::vector<DecodeCase> shortList(uint64_t kvHeads, uint64_t rows) {
  constexpr uint64_t kMiddle = 4096, kPrompt = 512;
  std::vector<DecodeCase> cases;
  const auto add = [&](std::vector<Storage> storages, std::vector<uint64_t> groups, std::vector<uint64_t> headDims,
                       std::vector<uint64_t> lengths, uint64_t rows) {
    const Axes axes{storages, groups, headDims, lengths, kvHeads, rows};
    for (const DecodeCase& each : axes.cases()) cases.push_back(each);
  };
  const std::vector<Storage> both = {{}, KVCodec{.bits = 4}};
  std::vector<Storage> otherCodes = allStorages();
  std::erase_if(otherCodes, [&](const Storage& storage) { return storage == both[0] || storage == both[1]; });
  add(both, {4}, {128}, {1024, kMiddle, 16384}, rows);
  add(otherCodes, {4}, {128}, {kMiddle}, rows);
  add(both, {1, 8, 16}, {128}, {kMiddle}, rows);
  add(both, {4}, {64, 256, 512}, {kMiddle}, rows);
  if (rows == 1) add(both, {4}, {128}, {kPrompt, 4 * kPrompt}, kPrompt);
  for (const auto& [length, ofLatent] : {std::pair(kMiddle, rows), std::pair(kPrompt, kPrompt / 8)}) {
    if (length == kPrompt && rows != 1) continue;
    const Axes latent{both, {128}, {64}, {length}, 1, ofLatent, 512};
    for (const DecodeCase& each : latent.cases()) cases.push_back(each);
  }
  return cases;
}

namespace {

QuantizedKVPlane makePlane(const std::shared_ptr<Device>& device, const DecodeCase& of, uint64_t headDim) {
  const KVCodec& codec = *of.storage;
  const auto row = need(sizes(codec, headDim));
  // Any byte is a valid code. The scales suit vectors with elements around one half.
  const bool isNorm = codec.name == KVCodec::Name::mlx1 && row.scales == 1;
  const float size = isNorm ? 0.5f * std::sqrt(static_cast<float>(headDim)) : 0.5f;
  const auto scales = [&](std::initializer_list<uint64_t> extents) {
    return makeFilled(device, codec.scaleType(), extents, 0.8f * size, size);
  };
  return {.codec = codec,
          .codes = makeFilled(device, DType::u8, {of.kvHeads, of.length, row.codeBytes}, 0, 256),
          .scales = row.scales == 1 ? scales({of.kvHeads, of.length}) : scales({of.kvHeads, of.length, row.scales})};
}

void makeCache(const std::shared_ptr<Device>& device, const DecodeCase& of, FlashDecode& op) {
  const auto latentDim = static_cast<uint32_t>(of.latentDim);
  if (of.storage) {
    op.cache = QuantizedKVCacheView{.keys = makePlane(device, of, of.headDim),
                                    .values = makePlane(device, of, of.valueDim()),
                                    .latentDim = latentDim};
    return;
  }
  const auto plane = [&](uint64_t headDim) {
    return makeFilled(device, DType::f16, {of.kvHeads, of.length, headDim}, -1, 1);
  };
  op.cache = KVCacheView{.keys = plane(of.headDim), .values = plane(of.valueDim()), .latentDim = latentDim};
}

}  // namespace

DecodeProblem::DecodeProblem(const std::shared_ptr<Device>& on, const DecodeCase& shape, uint32_t copies) : device(on) {
  const Tensor queries = makeFilled(device, DType::f16, {shape.rows, shape.heads(), shape.queryDim()}, -3, 3);
  const Tensor into = makeTensor(device, DType::f16, {shape.rows, shape.heads(), shape.valueDim()});
  for (uint32_t i = 0; i < copies; ++i) {
    FlashDecode op{.queries = queries, .sequences = {{.length = shape.length}}, .results = {.output = into}};
    op.options.scale = shape.scale();
    makeCache(device, shape, op);
    ops.push_back(std::move(op));
  }
}

std::vector<Plan> DecodeProblem::plans(const AttentionOptions& options) const {
  std::vector<Plan> plans;
  for (FlashDecode op : ops) {
    const float scale = op.options.scale;
    op.options = options;
    op.options.scale = scale;
    plans.push_back(need(plan(op, *device)));
  }
  return plans;
}

}  // namespace mnk::bench
