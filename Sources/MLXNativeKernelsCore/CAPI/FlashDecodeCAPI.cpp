#include <algorithm>

#include "CAPI/Generated/Read.hpp"
#include "Support/Try.hpp"

using namespace mnk;

namespace mnk::c {

namespace {

Result<HeadsView> queriesFrom(const mnk_flash_decode& input) {
  if (input.queries_view) {
    HeadsView view;
    MNK_TRY(read(view, *input.queries_view, {nullptr, "queries_view"}));
    return view;
  }
  if (!input.queries) return nullArgument("queries");
  return HeadsView(input.queries->tensor);
}

// Refuses a list that is longer than the queries before reading it.
Result<std::vector<AttendedSequence>> sequencesFrom(const mnk_flash_decode& input, const HeadsView& queries) {
  if (!input.sequences && input.sequence_count != 0) return nullArgument("sequences");
  const HeadsView::Strides axes = queries.isReadable() ? queries.resolved() : HeadsView::Strides{.sequences = 1};
  // Sequences with row counts share the rows of one sequence.
  const uint64_t most = axes.sequences == 1 ? std::max<uint64_t>(axes.tokens, 1) : axes.sequences;
  if (input.sequence_count > most) {
    return tooMany(FlashDecode::name, "sequences", input.sequence_count, most,
                   "Pass one for each sequence of the queries, or with a number of rows.");
  }
  std::vector<AttendedSequence> sequences;
  for (size_t i = 0; i < input.sequence_count; ++i) {
    MNK_TRY(read(sequences.emplace_back(), input.sequences[i], {nullptr, "sequences"}));
  }
  return sequences;
}

Result<std::variant<KVCacheView, QuantizedKVCacheView>> cacheFrom(const mnk_flash_decode& input) {
  using Cache = std::variant<KVCacheView, QuantizedKVCacheView>;
  if (bool(input.dense) == bool(input.quantized)) {
    return Error{.op = "C API",
                 .what = "attention needs one cache",
                 .got = input.dense ? "a dense and a quantized view" : "neither a dense nor a quantized view",
                 .expected = "one of them",
                 .fix = "Set either dense or quantized, and leave the other NULL."};
  }
  Cache cache;
  if (input.dense) {
    MNK_TRY(read(std::get<KVCacheView>(cache), *input.dense, {nullptr, "dense"}));
  } else {
    MNK_TRY(read(cache.emplace<QuantizedKVCacheView>(), *input.quantized, {nullptr, "quantized"}));
  }
  return cache;
}

Result<FlashDecode> decodeFrom(const mnk_flash_decode* op) {
  MNK_TRY(auto input, descriptor("mnk_flash_decode", op));
  MNK_TRY(auto queries, queriesFrom(input));
  MNK_TRY(auto over, cacheFrom(input));
  MNK_TRY(auto sequences, sequencesFrom(input, queries));
  FlashDecode result{.queries = std::move(queries),
                     .over = std::move(over),
                     .sequences = std::move(sequences),
                     .scratch = optional(input.scratch)};
  if (!input.results) return nullArgument("results");
  MNK_TRY(read(result.results, *input.results, {nullptr, "results"}));
  if (input.options) MNK_TRY(read(result.options, *input.options, {nullptr, "options"}));
  return result;
}

Result<MergePartials> mergeFrom(const mnk_merge_partials* op) {
  MNK_TRY(auto input, descriptor("mnk_merge_partials", op));
  MergePartials result{.sinks = optional(input.sinks)};
  MNK_TRY(read(result.partials, input.partials, {nullptr, "partials"}));
  if (!input.results) return nullArgument("results");
  MNK_TRY(read(result.results, *input.results, {nullptr, "results"}));
  return result;
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
