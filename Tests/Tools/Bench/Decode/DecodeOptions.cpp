#include "DecodeOptions.hpp"

using namespace mnk::arguments;

namespace mnk::bench {

std::vector<Option> DecodeOptions::table() {
  constexpr uint64_t kMost = 1 << 24;
  const auto positive = [](auto& into) { return number(into, 1, kMost); };
  std::vector<std::pair<std::string, Storage>> storages;
  for (const Storage& storage : Storage::all()) storages.emplace_back(storage.text(), storage);
  const auto stored = [storages](Storage& into) { return choice(into, storages); };
  const std::vector<std::pair<std::string, AttentionOptions::Kernel>> kernels = {
      {"automatic", AttentionOptions::Kernel::automatic},
      {"vector", AttentionOptions::Kernel::vector},
      {"matrix", AttentionOptions::Kernel::matrix}};
  return {
      {"--device", "KIND", "host or metal alone", text(device)},
      {"--workers", "N", "threads of the Host device and of plain C++", positive(workers)},
      {"--json", "FILE", "writes the results there too", text(jsonFile)},
      {"--full", "", "every length, group, head dim and storage; lists narrow it", constant(isFull, true)},
      {"--lengths", "LIST", "positions of the sequence, such as 256,4096,65536", list(axes.lengths, positive)},
      {"--groups", "LIST", "query heads for each head of the cache", list(axes.groups, positive)},
      {"--dims", "LIST", "head dims", list(axes.headDims, positive)},
      {"--latent", "N", "elements of values that are the first part of keys too; --dims is the rest",
       positive(axes.latentDim)},
      {"--storage", "LIST", "f16, turbo2 to turbo8, mlx1-4", list(axes.storages, stored)},
      {"--kv-heads", "N", "heads of the cache (8)", positive(axes.kvHeads)},
      {"--rows", "N", "rows of queries (1)", positive(axes.rows)},
      {"--kernel", "NAME", "vector or matrix, where the device shall not choose; the Host device has no matrix kernel",
       choice(attention.kernel, kernels)},
      {"--splits", "N", "parts of the keys, where the device shall not choose", positive(attention.splits)},
      {"--cold", "", "turns between copies of the cache, more than processors keep close", constant(isCold, true)},
      {"--tune", "", "measures what the device could choose, and what that gains over the table",
       constant(isTuning, true)},
      {"--shaders", "DIR", "whose text is counted (Shaders)", text(shaders)},
  };
}

std::vector<DecodeCase> DecodeOptions::cases() const {
  const bool isNarrowed = !axes.storages.empty() || !axes.groups.empty() || !axes.headDims.empty() ||
                          !axes.lengths.empty() || axes.latentDim != 0;
  if (!isFull && !isNarrowed) return shortList(axes.kvHeads, axes.rows);
  const DecodeCase usual;
  const Axes defaults = isFull
                            ? Axes::everything()
                            : Axes{{Storage::f16(), Storage::turbo(4)}, {usual.group}, {usual.headDim}, {usual.length}};
  Axes filled = axes;
  if (filled.storages.empty()) filled.storages = defaults.storages;
  if (filled.groups.empty()) filled.groups = defaults.groups;
  if (filled.headDims.empty()) filled.headDims = defaults.headDims;
  if (filled.lengths.empty()) filled.lengths = defaults.lengths;
  return filled.cases();
}

}  // namespace mnk::bench
