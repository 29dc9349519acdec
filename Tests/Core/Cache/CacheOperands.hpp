// Random rows of calls on a cache, and their operands in every form that calls take.
#pragma once
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "Cache/ModeledCache.hpp"

namespace mnk::test {

inline constexpr uint32_t kSequences = 3;
inline constexpr uint64_t kProgramHeads = 4;  // of queries

// Rows of sequences in one call. A sequence may be listed again.
struct Rows {
  std::vector<uint32_t> sequences, counts;

  uint64_t total() const { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }
  bool areEven() const { return std::ranges::adjacent_find(counts, std::not_equal_to()) == counts.end(); }
  bool isEachOnce() const { return std::set<uint32_t>(sequences.begin(), sequences.end()).size() == sequences.size(); }
};

// Draws rows, options and operands.
class CacheOperands {
 protected:
  // `reached` collects what was drawn.
  CacheOperands(std::shared_ptr<Device> device, Seeded& random, std::set<std::string>& reached)
      : device_(std::move(device)), random_(random), reached_(reached) {}

  uint32_t anySequence() { return static_cast<uint32_t>(random_.below(kSequences)); }
  Rows anyRows() {
    const bool isOneEach = coin(random_, 1, 4), isEven = coin(random_, 1, 3);
    const auto count = [&](uint64_t end) { return static_cast<uint32_t>(isOneEach ? 1 : random_.below(end)); };
    Rows rows{{anySequence()}, {count(9)}};
    while (coin(random_, 1, 3)) {
      rows.sequences.push_back(anySequence());
      rows.counts.push_back(isEven ? rows.counts[0] : count(5));
    }
    return rows;
  }
  RowOptions anyOptions(const Rows& rows, const AttentionCacheDescriptor& d) {
    const bool hasNumbers = coin(random_, 1, 4);
    const auto numbers = [&] { return hasNumbers ? smallNumbers(random_, kProgramHeads) : std::vector<float>(); };
    return {.window = random_.below(2) * (1 + random_.below(12)),
            .seesPinned = coin(random_, 1, 2),
            .isCausal = !rows.isEachOnce() || !coin(random_, 1, 6),
            .splits = static_cast<uint32_t>(random_.below(4)),
            .scale = d.latentDim != 0 || coin(random_, 1, 4) ? 0.125f : 0,
            .slopes = numbers(),
            .sinks = numbers()};
  }

  struct Numbers {
    std::vector<float> elements;
    uint64_t heads, dim;
  };
  Numbers someNumbers(const Rows& rows, uint64_t heads, uint64_t dim) {
    return {smallNumbers(random_, rows.total() * heads * dim), heads, dim};
  }
  // How a call passes its rows: with an axis of sequences, and with counts.
  struct Form {
    bool hasAxis = false, hasCounts = true;
  };
  Form anyForm(const Rows& rows) {
    const bool hasAxis = rows.areEven() && rows.total() != 0 && coin(random_, 1, 2);
    const bool isClear = rows.sequences.size() == 1 || hasAxis || (rows.areEven() && rows.counts[0] == 1);
    const Form form{.hasAxis = hasAxis, .hasCounts = !isClear || coin(random_, 1, 2)};
    if (hasAxis && rows.sequences.size() > 1) reached_.insert("an axis of sequences");
    if (!form.hasCounts && rows.sequences.size() > 1) reached_.insert("a list without counts");
    if (!rows.isEachOnce()) reached_.insert("a sequence that is listed again");
    return form;
  }
  static CacheStep listed(const Rows& rows, const Form& form) {
    return {.sequences = rows.sequences, .rowCounts = form.hasCounts ? std::optional(rows.counts) : std::nullopt};
  }
  // The axes of rows, which one row may leave out.
  Shape shape(const Rows& rows, bool hasAxis, std::vector<uint64_t> inner) {
    std::vector<uint64_t> axes{rows.total()};
    if (hasAxis) axes = {rows.sequences.size(), rows.counts[0]};
    if (!hasAxis && rows.total() == 1 && coin(random_, 1, 2)) {
      reached_.insert("a row without axes");
      axes.clear();
    }
    axes.insert(axes.end(), inner.begin(), inner.end());
    return REQUIRE(Shape::make(axes));
  }
  HeadsView view(const Numbers& of, const Rows& rows, const Form& form) {
    if (!form.hasAxis && coin(random_, 1, 2)) return viewOfAnyLayout(device_, random_, of.elements, of.heads, of.dim);
    return numbers(device_, of.elements, shape(rows, form.hasAxis, {of.heads, of.dim}));
  }
  AttentionResults someResults(const Rows& rows, uint64_t valueHeadDim) {
    const auto zeros = [&](std::vector<uint64_t> inner) {
      const bool hasAxis = rows.areEven() && rows.total() != 0 && coin(random_, 1, 2);
      return REQUIRE(Tensor::zeros(device_, DType::f32, shape(rows, hasAxis, std::move(inner))));
    };
    AttentionResults results{.output = zeros({kProgramHeads, valueHeadDim})};
    if (coin(random_, 1, 2)) results.logSumExp = zeros({kProgramHeads});
    return results;
  }
  AttentionOptions attentionOptions(const RowOptions& options) const {
    const auto tensor = [&](const std::vector<float>& of) {
      return of.empty() ? std::nullopt : std::optional(numbers(device_, of, REQUIRE(Shape::make({of.size()}))));
    };
    return {.scale = options.scale,
            .isCausal = options.isCausal,
            .window = static_cast<uint32_t>(options.window),
            .windowSeesPinned = options.seesPinned,
            .slopes = tensor(options.slopes),
            .sinks = tensor(options.sinks),
            .splits = options.splits};
  }

  std::shared_ptr<Device> device_;
  Seeded& random_;
  std::set<std::string>& reached_;
};

}  // namespace mnk::test
