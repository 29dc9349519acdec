// FlashDecode and MergePartials through the C API: invalid descriptors are refused. CApiBindingTests.cpp has the rest.
#include "CApiHarness.hpp"

// Passing NULL where the header forbids it is what some of these tests are about.
#pragma clang diagnostic ignored "-Wnonnull"

namespace mnk::test {

namespace {

struct AttendFixture {
  Owned<mnk_device> device = makeDevice();
  Owned<mnk_tensor> keys = makeTensor(device.get(), MNK_F32, {2, 8, 32});
  Owned<mnk_tensor> values = makeTensor(device.get(), MNK_F32, {2, 8, 32});
  Owned<mnk_tensor> queries = makeTensor(device.get(), MNK_F32, {2, 4, 32});
  Owned<mnk_tensor> out = makeTensor(device.get(), MNK_F32, {2, 4, 32});
  mnk_attended_sequence sequence{.sequence = 0, .length = 8};
  mnk_flash_decode op{.queries = {.tensor = queries.get()},
                      .cache = {.dense = {.keys = keys.get(), .values = values.get()}},
                      .sequences = &sequence,
                      .sequence_count = 1,
                      .results = {.output = out.get()}};
};

}  // namespace

TEST(CApiFlashDecode, DescriptorsAreChecked) {
  const auto device = makeDevice();
  const auto encoder = makeEncoder(device.get());
  Refusals no;
  const auto refuse = [&](auto change) {
    AttendFixture fixture;
    change(fixture);
    no(mnk_flash_decode_make_plan(&fixture.op, fixture.device.get(), no.out()));
    no(mnk_encoder_flash_decode(encoder.get(), &fixture.op, no.out()));
  };
  refuse([](AttendFixture& f) { f.op.queries = {}; });
  refuse([](AttendFixture& f) { f.op.cache = {}; });
  refuse([](AttendFixture& f) { f.op.cache.quantized.keys.codes = f.keys.get(); });
  refuse([](AttendFixture& f) { f.op.cache = {.quantized = {.pinned = 1}}; });
  refuse([](AttendFixture& f) { f.op.cache.dense.keys = nullptr; });
  refuse([](AttendFixture& f) { f.op.sequences = nullptr; });
  refuse([](AttendFixture& f) { f.op.sequence_count = 0; });
  refuse([](AttendFixture& f) { f.op.sequence_count = 3; });
  refuse([](AttendFixture& f) { f.op.sequence_count = SIZE_MAX; });  // nothing of such a list is read
  refuse([](AttendFixture& f) { f.op.results = {}; });
  refuse([](AttendFixture& f) { f.op.results.partials.sums = f.out.get(); });
  refuse([](AttendFixture& f) { f.op.results.partials.stats = f.out.get(); });
  refuse([](AttendFixture& f) { f.op.options.kernel = number<mnk_attention_options_kernel>(3); });
  refuse([](AttendFixture& f) { f.op.options.merge = number<mnk_attention_options_merge>(3); });
  refuse([](AttendFixture& f) { f.sequence.sequence = 1; });
  AttendFixture fixture;
  no(mnk_encoder_flash_decode(nullptr, &fixture.op, no.out()));
  no(mnk_encoder_flash_decode(encoder.get(), nullptr, no.out()));

  mnk_merge_partials merge{};
  no(mnk_encoder_merge_partials(encoder.get(), &merge, no.out()));
  merge.parts.sums = fixture.out.get();
  no(mnk_merge_partials_make_plan(&merge, no.out()));
  merge.parts.stats = fixture.out.get();
  no(mnk_merge_partials_make_plan(&merge, no.out()));
  merge.results = fixture.op.results;
  no(mnk_merge_partials_make_plan(&merge, no.out()));
}

}  // namespace mnk::test
