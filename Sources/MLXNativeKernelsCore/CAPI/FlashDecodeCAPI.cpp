#include <algorithm>

#include "CAPI/Attention.hpp"
#include "CAPI/HeadsViews.hpp"
#include "CAPI/KVViews.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace mnk::c {

namespace {

Result<AttentionPartials> partialsFrom(const mnk_tensor* sums, const mnk_tensor* stats) {
  if (!sums) return nullArgument("partial_sums");
  if (!stats) return nullArgument("partial_stats");
  return AttentionPartials{.sums = sums->tensor, .stats = stats->tensor};
}

}  // namespace

Result<AttentionOptions> attentionOptions(const mnk_attention_options* options) {
  if (!options) return AttentionOptions{};
  MNK_TRY(auto given, descriptor("mnk_attention_options", options));
  MNK_TRY(auto kernel, flashDecodeKernel(given.kernel));
  MNK_TRY(auto merge, flashDecodeMerge(given.merge));
  return AttentionOptions{.scale = given.scale,
                          .isCausal = !given.is_bidirectional,
                          .window = given.window,
                          .windowSeesPinned = given.window_sees_pinned,
                          .softcap = given.softcap,
                          .mask = optional(given.mask),
                          .slopes = optional(given.slopes),
                          .sinks = optional(given.sinks),
                          .splits = given.splits,
                          .kernel = kernel,
                          .merge = merge};
}

Result<AttentionResults> attentionResults(const mnk_attention_results* results) {
  MNK_TRY(auto given, descriptor("mnk_attention_results", results));
  AttentionResults made{.into = optional(given.into), .logSumExp = optional(given.log_sum_exp)};
  if (given.partial_sums || given.partial_stats) {
    MNK_TRY(auto partials, partialsFrom(given.partial_sums, given.partial_stats));
    made.partials = std::move(partials);
  }
  return made;
}

namespace {

Result<HeadsView> queriesFrom(const mnk_flash_decode& given) {
  if (given.queries_view) {
    MNK_TRY(auto view, viewFrom(*given.queries_view));
    if (!view) return nullArgument("queries_view.tensor");
    return std::move(*view);
  }
  if (!given.queries) return nullArgument("queries");
  return HeadsView(given.queries->tensor);
}

// Refuses a list that is longer than the queries before reading it.
Result<std::vector<AttendedSequence>> sequencesFrom(const mnk_flash_decode& given, const HeadsView& queries) {
  if (!given.sequences && given.sequence_count != 0) return nullArgument("sequences");
  const HeadsView::Strides axes = queries.isReadable() ? queries.resolved() : HeadsView::Strides{.sequences = 1};
  // Sequences with row counts share the rows of one sequence.
  const uint64_t most = axes.sequences == 1 ? std::max<uint64_t>(axes.tokens, 1) : axes.sequences;
  if (given.sequence_count > most) {
    return tooMany(FlashDecode::name, "sequences", given.sequence_count, most,
                   "Pass one for each sequence of the queries, or with a number of rows.");
  }
  std::vector<AttendedSequence> sequences;
  for (size_t i = 0; i < given.sequence_count; ++i) {
    const mnk_attended_sequence& one = given.sequences[i];
    sequences.push_back({.sequence = one.sequence, .length = one.length, .highest = one.highest, .rows = one.rows});
  }
  return sequences;
}

Result<std::variant<KVCacheView, QuantizedKVCacheView>> cacheFrom(const mnk_flash_decode& given) {
  using Cache = std::variant<KVCacheView, QuantizedKVCacheView>;
  if (bool(given.dense) == bool(given.quantized)) {
    return Error{.op = "C API",
                 .what = "attention needs one cache",
                 .got = given.dense ? "a dense and a quantized view" : "neither a dense nor a quantized view",
                 .expected = "one of them",
                 .fix = "Set either dense or quantized, and leave the other NULL."};
  }
  if (given.dense) {
    MNK_TRY(auto view, cacheView(*given.dense, "dense"));
    return Cache(std::move(view));
  }
  MNK_TRY(auto view, quantizedView(*given.quantized, "quantized"));
  return Cache(std::move(view));
}

Result<FlashDecode> decodeFrom(const mnk_flash_decode* op) {
  MNK_TRY(auto given, descriptor("mnk_flash_decode", op));
  MNK_TRY(auto queries, queriesFrom(given));
  MNK_TRY(auto over, cacheFrom(given));
  MNK_TRY(auto sequences, sequencesFrom(given, queries));
  MNK_TRY(auto results, attentionResults(given.results));
  MNK_TRY(auto options, attentionOptions(given.options));
  return FlashDecode{.queries = std::move(queries),
                     .over = std::move(over),
                     .sequences = std::move(sequences),
                     .results = std::move(results),
                     .options = std::move(options),
                     .scratch = optional(given.scratch)};
}

Result<MergePartials> mergeFrom(const mnk_merge_partials* op) {
  MNK_TRY(auto given, descriptor("mnk_merge_partials", op));
  MNK_TRY(auto partials, partialsFrom(given.partial_sums, given.partial_stats));
  MNK_TRY(auto results, attentionResults(given.results));
  return MergePartials{.partials = std::move(partials), .sinks = optional(given.sinks), .results = std::move(results)};
}

}  // namespace

}  // namespace mnk::c

mnk_plan* mnk_flash_decode_make_plan(const mnk_flash_decode* op, const mnk_device* device, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&]() -> Result<mnk_plan*> {
    MNK_TRY(auto decode, c::decodeFrom(op));
    return c::handleFor(device ? plan(decode, *device->device) : plan(decode));
  });
}

bool mnk_encoder_flash_decode(mnk_encoder* encoder, const mnk_flash_decode* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, c::decodeFrom(op)); });
}

mnk_plan* mnk_merge_partials_make_plan(const mnk_merge_partials* op, mnk_error_out error) {
  return c::make<mnk_plan>(error, {}, [&] { return c::planFor(c::mergeFrom(op)); });
}

bool mnk_encoder_merge_partials(mnk_encoder* encoder, const mnk_merge_partials* op, mnk_error_out error) {
  return c::run(error, {{encoder, "encoder"}}, [&] { return c::encode(*encoder, c::mergeFrom(op)); });
}
