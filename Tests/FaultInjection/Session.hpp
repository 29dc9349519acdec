// A client of the C API, with named tensors, an encoder and a cache. A step is one call of the library, in which
// allocations may fail.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "CAPI/CStructs.hpp"
#include "CAPI/Handles.hpp"
#include "Calls.hpp"
#include "MLXNativeKernels/mnk_metal.h"

namespace mnk::inject {

// Sizes: heads of queries and of the cache, elements of a vector, tokens of a step, slots.
inline constexpr uint32_t kHeads = 2, kHeadDim = 64, kTokens = 3, kCapacity = 8, kMeasuredCapacity = 256,
                          kSequences = 3;
inline constexpr uint64_t kElements = kTokens * kHeads * kHeadDim;  // in a step

// Tensors of f32, [rows, kHeads, kHeadDim]. The first three are filled with numbers; those from kRowKeys on are views
// of others.
enum Name : uint8_t {
  kKeys,
  kValues,
  kQueries,
  kAttended,
  kRowAttended,
  kReadKeys,
  kReadValues,
  kRotatedQueries,
  kRotatedKeys,
  kRowKeys,
  kRowValues,
  kRowQueries,
  kReshaped,
  kNames
};
inline std::array<uint64_t, 3> shapeOf(Name name) {
  const bool areRows = name == kRowAttended || (name >= kRowKeys && name <= kRowQueries);
  return {areRows ? 2 : kTokens, kHeads, kHeadDim};
}

enum class CacheCall : uint8_t { append, attend, both };
enum class Rotation : uint8_t { none, ofCache, listed };  // of a step; listed: by the cache's next positions

class Session {
  static constexpr mnk_rotary_embedding kRotary{
      .layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 10000, .scale = 1};

  static void countFinished(void* counter, const mnk_error*) { count(counter); }

  mnk_heads_view view(Name name) const { return {.tensor = tensors_[name], .layout = MNK_KV_LAYOUT_TOKEN_MAJOR}; }

 public:
  Step makeDevice(bool isMetal) {
    return [=, this] {
      return make("mnk_device_make", device_, [&](mnk_error_out error) {
        const mnk_host_options onHost{.workers = 2};
        const mnk_metal_options onMetal{};
        return isMetal ? mnk_device_make_metal(&onMetal, error) : mnk_device_make_host(&onHost, error);
      });
    };
  }
  const std::shared_ptr<Device>& device() const { return device_->device; }
  // Compiles kernel text, then clears the device's registry.
  Step compile() {
    return [this] {
      static constexpr char kText[] =
          "kernel void injected(device float* numbers [[buffer(0)]]) { numbers[0] = 1; }\nexport_kernel(injected)\n";
      mnk_library* library = nullptr;
      const Status status =
          MAKE(library, mnk_library_make_from_text, device_, kText, "a label that is longer than any string");
      drop(library);
      call("mnk_device_clear_kernels", [&] { mnk_device_clear_kernels(device_); });
      return status;
    };
  }
  Step makeTensor(Name name) {
    return MAKES(tensors_[name], mnk_tensor_make, device_, MNK_F32, shapeOf(name).data(), 3);
  }
  // `released` counts how often the memory was released.
  Step wrap(Name name, std::span<float> memory, std::atomic<int>* released) {
    return MAKES(tensors_[name], mnk_tensor_make_wrapping, device_, memory.data(), memory.size_bytes(), MNK_F32,
                 shapeOf(name).data(), 3, 0, count, released);
  }
  Step slice(Name name, Name of, uint64_t begin, uint64_t count) {
    return MAKES(tensors_[name], mnk_tensor_make_slice, tensors_[of], begin, count);
  }
  Step reshape(Name name, Name of) {
    return MAKES(tensors_[name], mnk_tensor_make_reshaped, tensors_[of], shapeOf(name).data(), 3);
  }
  Step write(Name name, std::span<const float> from) {
    return RUNS(mnk_tensor_write, tensors_[name], from.data(), from.size_bytes());
  }
  Step read(Name name, std::span<float> into) {
    return RUNS(mnk_tensor_read, tensors_[name], into.data(), into.size_bytes());
  }

  // The steps that plan and encode an op.
  struct OpSteps {
    Step plan, encode;
  };
  template <typename Op>
  OpSteps stepsOf(const Op& of) {
    struct Kept {
      Op op;
      test::CStructs structs = {};
      decltype(structs.of(op)) given = structs.of(op);
    };
    const std::shared_ptr<Kept> kept(new Kept{of});
    const auto plan = [=, this] {
      mnk_plan* plan = nullptr;
      const Status status = make("mnk_…_make_plan", plan, [&](mnk_error_out error) {
        return test::makePlan(test::cFunctionsOf<Op>().first, &kept->given, device_, error);
      });
      if (!status.succeeded) return status;
      call("mnk_plan_dispatch", [&] { return mnk_plan_dispatch(plan, 0).bytes_read + *mnk_plan_text(plan); });
      drop(plan);
      return Status();
    };
    const auto encode = [=, this] {
      return run("mnk_encoder_…",
                 [&](mnk_error_out error) { return test::cFunctionsOf<Op>().second(encoder_, &kept->given, error); });
    };
    return {plan, encode};
  }
  // Rotates by the next positions of the cache's sequence 1, in two entries.
  Step rotate() {
    return [this] {
      static constexpr uint32_t kListed[] = {1, 1}, kRows[] = {1, kTokens - 1};
      const mnk_multi_rope rope{
          .queries = view(kQueries),
          .keys = view(kKeys),
          .rotated_queries = view(kRotatedQueries),
          .rotated_keys = view(kRotatedKeys),
          .positions = {.cache = cache_, .sequences = kListed, .row_counts = kRows, .sequence_count = 2},
          .rotary = kRotary};
      return RUN(mnk_encoder_multi_rope, encoder_, &rope);
    };
  }
  Step makeEncoder() {
    return MAKES(encoder_, mnk_encoder_make, device_, "a label that is longer than any string holds in place");
  }
  Step measureOps() { return RUNS(mnk_encoder_measure_ops, encoder_); }
  Step commit(std::atomic<int>* finished) {
    return MAKES(completion_, mnk_encoder_commit, encoder_, countFinished, finished);
  }
  Status wait() {
    const Status waited = RUN(mnk_completion_wait, completion_);
    if (!waited.succeeded) return waited;
    return copied(call("mnk_completion_copy_text", [&] { return mnk_completion_copy_text(completion_); }));
  }
  // A step, recorded by an encoder.
  Step makeRecording() { return MAKES(encoder_, mnk_encoder_make_recording, device_, "a step"); }
  Step makeStep() { return MAKES(step_, mnk_recorded_step_make, encoder_); }
  Step encodeStep() { return RUNS(mnk_encoder_encode_step, encoder_, step_); }
  Step runStep(std::atomic<int>* finished) {
    return MAKES(completion_, mnk_recorded_step_run, step_, countFinished, finished);
  }

  Step makeCache(bool isQuantized, uint32_t capacity) {
    return [=, this] {
      const uint32_t bits = isQuantized ? 4 : 0;
      const mnk_attention_cache_descriptor descriptor{.kv_heads = kHeads,
                                                      .head_dim = kHeadDim,
                                                      .capacity = capacity,
                                                      .sequences = kSequences,
                                                      .dtype = MNK_F32,
                                                      .has_quantized = isQuantized,
                                                      .quantized = {.key_bits = bits, .value_bits = bits}};
      return MAKE(cache_, mnk_cache_make, device_, &descriptor);
    };
  }
  // With all tokens in one sequence, or with the tensors of rows in several.
  Step encode(CacheCall cacheCall, std::vector<uint32_t> sequences, Rotation rotation = Rotation::none) {
    return [=, this] {
      static constexpr uint32_t kRows = kTokens;
      const bool areRows = sequences.size() > 1;
      mnk_cache_step step{.sequences = sequences.data(), .sequence_count = sequences.size()};
      if (cacheCall != CacheCall::attend) {
        step.keys = view(areRows ? kRowKeys : kKeys);
        step.values = view(areRows ? kRowValues : kValues);
      }
      if (cacheCall != CacheCall::append) {
        step.queries = view(areRows ? kRowQueries : kQueries);
        step.results.output = tensors_[areRows ? kRowAttended : kAttended];
      }
      step.has_rotary = rotation != Rotation::none;
      if (step.has_rotary) step.rotary.embedding = kRotary;
      if (rotation == Rotation::listed) {
        step.rotary.positions = {
            .cache = cache_, .sequences = sequences.data(), .row_counts = &kRows, .sequence_count = 1};
      }
      switch (cacheCall) {
        case CacheCall::append:
          return RUN(mnk_encoder_append, encoder_, cache_, &step);
        case CacheCall::attend:
          return RUN(mnk_encoder_attend, encoder_, cache_, &step);
        case CacheCall::both:
          break;
      }
      return RUN(mnk_encoder_append_and_attend, encoder_, cache_, &step);
    };
  }
  Step copy(uint32_t source, uint32_t target) {
    return RUNS(mnk_encoder_copy_sequence, encoder_, cache_, source, target);
  }
  // Makes a larger cache beside the cache.
  Step grow(uint32_t capacity) { return MAKES(larger_, mnk_encoder_make_grown_cache, encoder_, cache_, capacity); }
  Step copyToLarger(uint32_t source, uint32_t target) {
    return RUNS(mnk_encoder_copy_sequence_to_cache, encoder_, cache_, source, larger_, target);
  }
  Step dequantize(uint32_t sequence) {  // its first tokens
    return RUNS(mnk_encoder_dequantize, encoder_, cache_, tensors_[kReadKeys], tensors_[kReadValues], 0, sequence,
                MNK_KV_DOMAIN_ORIGINAL);
  }
  Step truncate(uint64_t position, uint32_t sequence) { return RUNS(mnk_cache_truncate, cache_, position, sequence); }
  Step prepare(const std::string& tuningFile, uint32_t rows) {
    return [=, this] {
      const mnk_cache* caches[] = {cache_};
      const mnk_preparation preparation{.caches = caches,
                                        .cache_count = 1,
                                        .rows = rows,
                                        .dtype = MNK_F32,
                                        .has_rotary = true,
                                        .rotary = kRotary,
                                        .tuning = MNK_TUNING_MEASURE,
                                        .tuning_file = tuningFile.c_str()};
      return RUN(mnk_device_prepare, device_, &preparation, nullptr);
    };
  }
  Step text() {
    return [this] { return copied(call("mnk_cache_copy_text", [&] { return mnk_cache_copy_text(cache_); })); };
  }
  Step save(const std::string& path) { return RUNS(mnk_cache_save, cache_, path.c_str()); }
  Step load(const std::string& path) {  // replaces the cache
    return MAKES(cache_, mnk_cache_make_from_path, device_, path.c_str(), 1 << 20, 0);
  }
  mnk_sequence_state sequence(uint32_t index) const {
    mnk_sequence_state state{};
    mnk_cache_get_sequence(cache_, index, &state, nullptr);
    return state;
  }
  void dropCache() {
    drop(cache_);
    drop(larger_);
  }

  // Releases everything except the device, then the device.
  void dropTensors() {
    drop(encoder_);
    drop(completion_);
    drop(step_);
    dropCache();
    for (mnk_tensor*& tensor : tensors_) drop(tensor);
  }
  void dropDevice() { drop(device_); }

 private:
  mnk_device* device_ = nullptr;
  std::array<mnk_tensor*, kNames> tensors_ = {};
  mnk_encoder* encoder_ = nullptr;
  mnk_completion* completion_ = nullptr;
  mnk_recorded_step* step_ = nullptr;
  mnk_cache* cache_ = nullptr;
  mnk_cache* larger_ = nullptr;
};

}  // namespace mnk::inject
