#include "DecodeCase.hpp"

namespace mnk::bench {

std::string Storage::text() const {
  if (!codec) return "f16";
  const std::string name = codec->name == KVCodec::Name::turbo ? "turbo" : "mlx1-";
  return name + std::to_string(codec->bits);
}

std::vector<Storage> Storage::all() {
  std::vector<Storage> storages = {f16()};
  for (uint32_t bits = 2; bits <= 8; ++bits) storages.push_back(turbo(bits));
  storages.push_back({KVCodec{.name = KVCodec::Name::mlx1, .bits = 4}});
  return storages;
}

Result<uint64_t> Storage::bytes(uint64_t headDim) const {
  if (!codec) return headDim * byteSize(DType::f16);
  auto row = sizes(*codec, headDim);
  if (!row) return std::move(row).error();
  return row->byteCount();
}

Result<uint64_t> DecodeCase::bytes() const {
  auto key = storage.bytes(headDim), value = storage.bytes(valueDim());
  if (!key || !value) return std::move(key ? value : key).error();
  return kvHeads * length * (*key + *value) + rows * heads() * (queryDim() + valueDim()) * byteSize(DType::f16);
}

uint64_t DecodeCase::operations() const {
  const uint64_t seen = rows * (length - rows) + rows * (rows + 1) / 2;  // keys of all rows
  return 2 * heads() * (queryDim() + valueDim()) * seen;
}

Axes Axes::everything() {
  Axes axes{.storages = Storage::all(), .groups = {1, 4, 8, 16}, .headDims = {64, 128, 256, 512}};
  for (uint64_t length = 256; length <= 65536; length *= 2) axes.lengths.push_back(length);
  return axes;
}

std::vector<DecodeCase> Axes::cases() const {
  std::vector<DecodeCase> cases;
  for (const uint64_t headDim : headDims) {
    for (const uint64_t group : groups) {
      for (const Storage& storage : storages) {
        if (storage.codec && !storage.codec->canQuantize(headDim)) continue;
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
  const std::vector<Storage> both = {Storage::f16(), Storage::turbo(4)};
  std::vector<Storage> otherCodes;
  for (const Storage& storage : Storage::all()) {
    if (storage.codec && storage.codec != both[1].codec) otherCodes.push_back(storage);
  }
  add(both, {4}, {128}, {1024, kMiddle, 16384}, rows);
  add(otherCodes, {4}, {128}, {kMiddle}, rows);
  add(both, {1, 8, 16}, {128}, {kMiddle}, rows);
  add(both, {4}, {64, 256, 512}, {kMiddle}, rows);
  if (rows == 1) add(both, {4}, {128}, {kPrompt, 4 * kPrompt}, kPrompt);
  const auto addLatent = [&](uint64_t length, uint64_t rows) {
    const Axes axes{both, {128}, {64}, {length}, 1, rows, 512};
    for (const DecodeCase& each : axes.cases()) cases.push_back(each);
  };
  addLatent(kMiddle, rows);
  if (rows == 1) addLatent(kPrompt, kPrompt / 8);
  return cases;
}

}  // namespace mnk::bench
