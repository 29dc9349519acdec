// FlashDecode and MergePartials through the C API: invalid descriptors are refused. CApiBindingTests.cpp has the rest.
#include "CAPI/Handles.hpp"
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
  mnk_kv_cache_view view{.keys = keys.get(), .values = values.get()};
  mnk_attended_sequence sequence{.sequence = 0, .length = 8};
  mnk_attention_results results{.into = out.get()};
  mnk_attention_options options{};
  mnk_heads_view queriesView{.tensor = queries.get()};
  mnk_quantized_kv_cache_view quantized{};
  mnk_flash_decode op{.queries = queries.get(),
                      .dense = &view,
                      .sequences = &sequence,
                      .sequence_count = 1,
                      .results = &results,
                      .options = &options};
};

}  // namespace

TEST(CApiFlashDecode, WithoutOptionsThereAreTheDefaults) {
  AttendFixture fixture;
  const auto inlines = [&] {
    const Owned<mnk_plan> plan(mnk_flash_decode_make_plan(&fixture.op, nullptr, nullptr), mnk_plan_release);
    return plan->plan.dispatches.at(0).inlines.at(0).bytes;
  };
  const auto byDefault = inlines();
  fixture.op.options = nullptr;
  EXPECT(inlines() == byDefault);
  fixture.op.options = &fixture.options;
  fixture.options.scale = 1;
  EXPECT(inlines() != byDefault);
}

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
  refuse([](AttendFixture& f) { f.op.queries = nullptr; });
  refuse([](AttendFixture& f) { f.op.queries_view = &f.queriesView, f.queriesView.tensor = nullptr; });
  refuse([](AttendFixture& f) { f.op.dense = nullptr; });
  refuse([](AttendFixture& f) { f.op.quantized = &f.quantized; });
  refuse([](AttendFixture& f) { f.op.dense = nullptr, f.op.quantized = &f.quantized; });
  refuse([](AttendFixture& f) { f.view.keys = nullptr; });
  refuse([](AttendFixture& f) { f.op.sequences = nullptr; });
  refuse([](AttendFixture& f) { f.op.sequence_count = 3; });
  refuse([](AttendFixture& f) { f.op.sequence_count = SIZE_MAX; });  // nothing of such a list is read
  refuse([](AttendFixture& f) { f.op.results = nullptr; });
  refuse([](AttendFixture& f) { f.results.partials.sums = f.out.get(); });
  refuse([](AttendFixture& f) { f.results.partials.stats = f.out.get(); });
  refuse([](AttendFixture& f) { f.options.kernel = number<mnk_attention_options_kernel>(3); });
  refuse([](AttendFixture& f) { f.options.merge = number<mnk_attention_options_merge>(3); });
  refuse([](AttendFixture& f) { f.sequence.sequence = 1; });
  AttendFixture fixture;
  no(mnk_encoder_flash_decode(nullptr, &fixture.op, no.out()));
  no(mnk_encoder_flash_decode(encoder.get(), nullptr, no.out()));

  mnk_merge_partials merge{};
  no(mnk_encoder_merge_partials(encoder.get(), &merge, no.out()));
  no(mnk_encoder_merge_partials(encoder.get(), &merge, no.out()));
  merge.partials.sums = fixture.out.get();
  no(mnk_merge_partials_make_plan(&merge, no.out()));
  merge.partials.stats = fixture.out.get();
  no(mnk_merge_partials_make_plan(&merge, no.out()));
  merge.results = &fixture.results;
  no(mnk_merge_partials_make_plan(&merge, no.out()));
}

}  // namespace mnk::test
