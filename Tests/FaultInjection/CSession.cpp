#include "MLXNativeKernels/mnk.h"
#include "MLXNativeKernels/mnk_metal.h"
#include "Session.hpp"

namespace mnk::inject {

namespace {

// The error that a call stored, or a message that it stored none.
Status failure(mnk_error* error) {
  Status status{false, static_cast<ErrorCode>(mnk_error_get_code(error)), mnk_error_message(error)};
  if (!error) status.message = "no error was stored";
  mnk_error_release(error);
  return status;
}

// A call that takes an error and returns whether it succeeded.
template <typename Body>
Status run(const char* name, Body body) {
  mnk_error* error = nullptr;
  return call(name, [&] { return body(&error); }) ? Status() : failure(error);
}

// The release function of each handle.
struct Release {
  static void call(mnk_device* handle) { mnk_device_release(handle); }
  static void call(mnk_library* handle) { mnk_library_release(handle); }
  static void call(mnk_tensor* handle) { mnk_tensor_release(handle); }
  static void call(mnk_plan* handle) { mnk_plan_release(handle); }
  static void call(mnk_encoder* handle) { mnk_encoder_release(handle); }
  static void call(mnk_completion* handle) { mnk_completion_release(handle); }
  static void call(mnk_recorded_step* handle) { mnk_recorded_step_release(handle); }
  static void call(mnk_cache* handle) { mnk_cache_release(handle); }
};

template <typename Handle>
void drop(Handle*& kept) {
  call("release", [&] { Release::call(kept); });
  kept = nullptr;
}

// A call that returns an object, which replaces `kept`.
template <typename Handle, typename Body>
Status make(const char* name, Handle*& kept, Body body) {
  mnk_error* error = nullptr;
  Handle* handle = call(name, [&] { return body(&error); });
  if (!handle) return failure(error);
  drop(kept);
  kept = handle;
  return {};
}

// The same for one function of the API, whose last argument is the error.
#define RUN(function, ...) run(#function, [&](mnk_error_out error) { return function(__VA_ARGS__, error); })
#define MAKE(kept, function, ...) \
  make(#function, kept, [&](mnk_error_out error) { return function(__VA_ARGS__, error); })

void count(void* counter) {
  ++*static_cast<std::atomic<int>*>(counter);
}
void countFinished(void* counter, const mnk_error*) {
  count(counter);
}

// Releases a text that the caller owns; null means that memory was exhausted.
Status copied(char* text) {
  if (!text) return {false, ErrorCode::outOfMemory, "no text"};
  mnk_text_release(text);
  return {};
}

constexpr mnk_rotary_embedding kRotary{.layout = MNK_ROTARY_EMBEDDING_LAYOUT_HALF_SPLIT, .base = 10000, .scale = 1};

class CSession final : public Session {
  mnk_heads_view view(Name name) const { return {.tensor = tensors_[name], .layout = MNK_KV_LAYOUT_TOKEN_MAJOR}; }

  // Calls `body` with the descriptor of an op, and the functions that plan and encode it.
  template <typename Body>
  auto withOp(Op op, Body body) const {
    const auto& t = tensors_;
    const mnk_kv_cache_view dense{.keys = t[kDenseKeys], .values = t[kDenseValues]};
    const mnk_kv_codec codec{MNK_KV_CODEC_NAME_TURBO, 4, 0};
    const mnk_quantized_kv_cache_view quantized{
        .keys = {.codec = codec, .codes = t[kKeyCodes], .scales = t[kKeyScales]},
        .values = {.codec = codec, .codes = t[kValueCodes], .scales = t[kValueScales]}};
    const mnk_attended_sequence sequence{.sequence = 0, .length = kTokens, .has_position = true};
    mnk_kv_cache_write write{.keys = view(kKeys), .values = view(kValues), .into = dense};
    const auto attend = [&](bool isQuantized, const mnk_attention_results& results) {
      mnk_flash_decode decode{
          .queries = view(kQueries), .sequences = &sequence, .sequence_count = 1, .results = results};
      if (isQuantized)
        decode.cache.quantized = quantized;
      else
        decode.cache.dense = dense;
      const auto plan = [this](const mnk_flash_decode* decode, mnk_error_out error) {
        return mnk_flash_decode_make_plan(decode, device_, error);
      };
      return body(decode, plan, mnk_encoder_flash_decode);
    };
    switch (op) {
      case Op::write:
        break;
      case Op::quantize: {
        const mnk_kv_cache_quantize quantize{.keys = view(kKeys), .values = view(kValues), .into = quantized};
        return body(quantize, mnk_kv_cache_quantize_make_plan, mnk_encoder_kv_cache_quantize);
      }
      case Op::dequantize: {
        const mnk_kv_cache_dequantize dequantize{
            .from = quantized, .keys = t[kReadKeys], .values = t[kReadValues], .layout = MNK_KV_LAYOUT_TOKEN_MAJOR};
        return body(dequantize, mnk_kv_cache_dequantize_make_plan, mnk_encoder_kv_cache_dequantize);
      }
      case Op::hadamard: {
        const mnk_hadamard hadamard{
            .from = t[kWrapped], .into = t[kTurned], .has_signs = true, .signs = MNK_KV_CODEC_NAME_TURBO};
        return body(hadamard, mnk_hadamard_make_plan, mnk_encoder_hadamard);
      }
      case Op::attend:
        return attend(false, {.output = t[kAttended]});
      case Op::attendQuantized:
        return attend(true, {.output = t[kAttendedQuantized]});
      case Op::attendPartials:
        return attend(false, {.partials = {.sums = t[kPartSums], .stats = t[kPartStats]}});
      case Op::merge: {
        const mnk_merge_partials merge{.parts = {.sums = t[kPartialSums], .stats = t[kPartialStats]},
                                       .results = {.output = t[kMerged]}};
        return body(merge, mnk_merge_partials_make_plan, mnk_encoder_merge_partials);
      }
      case Op::rope:
      case Op::ropeNext: {
        static constexpr uint32_t kListed[] = {1, 1}, kRows[] = {1, kTokens - 1};
        mnk_multi_rope rope{.queries = view(kQueries),
                            .keys = view(kKeys),
                            .rotated_queries = view(kRotatedQueries),
                            .rotated_keys = view(kRotatedKeys),
                            .rotary = kRotary};
        if (op == Op::rope) rope.positions = {.has_first = true, .first = 7};
        if (op == Op::ropeNext)
          rope.positions = {.cache = cache_, .sequences = kListed, .row_counts = kRows, .sequence_count = 2};
        return body(rope, mnk_multi_rope_make_plan, mnk_encoder_multi_rope);
      }
      case Op::broken:
        write.position = kCapacity;
        break;
    }
    return body(write, mnk_kv_cache_write_make_plan, mnk_encoder_kv_cache_write);
  }

 public:
  Status makeDevice(bool isMetal) override {
    return make("mnk_device_make", device_, [&](mnk_error_out error) {
      const mnk_host_options onHost{.workers = 2};
      const mnk_metal_options onMetal{};
      return isMetal ? mnk_device_make_metal(&onMetal, error) : mnk_device_make_host(&onHost, error);
    });
  }

  Status compile() override {
    mnk_library* library = nullptr;
    const Status status =
        MAKE(library, mnk_library_make_from_text, device_, kKernelText, "a label that is longer than any string");
    drop(library);
    call("mnk_device_clear_kernels", [&] { mnk_device_clear_kernels(device_); });
    return status;
  }
  Status makeTensor(Name name) override {
    const About& about = kAbout[name];
    const mnk_dtype dtype = about.kind == Kind::f32 ? MNK_F32 : about.kind == Kind::f16 ? MNK_F16 : MNK_U8;
    return MAKE(tensors_[name], mnk_tensor_make, device_, dtype, about.shape.data(), about.rank);
  }
  Status wrap(Name name, void* memory, uint64_t bytes, std::atomic<int>& released) override {
    return MAKE(tensors_[name], mnk_tensor_make_wrapping, device_, memory, bytes, MNK_F32, kAbout[name].shape.data(),
                kAbout[name].rank, 0, count, &released);
  }
  Status slice(Name name, Name of, uint64_t begin, uint64_t count) override {
    return MAKE(tensors_[name], mnk_tensor_make_slice, tensors_[of], begin, count);
  }
  Status reshape(Name name, Name of) override {
    return MAKE(tensors_[name], mnk_tensor_make_reshaped, tensors_[of], kAbout[name].shape.data(), kAbout[name].rank);
  }
  Status write(Name name, std::span<const float> from) override {
    return RUN(mnk_tensor_write, tensors_[name], from.data(), from.size_bytes());
  }
  Status read(Name name, std::span<float> into) override {
    return RUN(mnk_tensor_read, tensors_[name], into.data(), into.size_bytes());
  }

  Status plan(Op op) override {
    mnk_plan* plan = nullptr;
    const Status status = make("mnk_…_make_plan", plan, [&](mnk_error_out error) {
      return withOp(op, [&](const auto& about, auto plan, auto) { return plan(&about, error); });
    });
    if (!status.succeeded) return status;
    call("mnk_plan_dispatch", [&] { return mnk_plan_dispatch(plan, 0).bytes_read + *mnk_plan_text(plan); });
    drop(plan);
    return {};
  }
  Status makeEncoder() override {
    return MAKE(encoder_, mnk_encoder_make, device_, "a label that is longer than any string holds in place");
  }
  Status measureOps() override { return RUN(mnk_encoder_measure_ops, encoder_); }
  Status encode(Op op) override {
    return run("mnk_encoder_…", [&](mnk_error_out error) {
      return withOp(op, [&](const auto& about, auto, auto encode) { return encode(encoder_, &about, error); });
    });
  }
  Status commit(std::atomic<int>& finished) override {
    return MAKE(completion_, mnk_encoder_commit, encoder_, countFinished, &finished);
  }
  Status wait() override {
    const Status waited = RUN(mnk_completion_wait, completion_);
    if (!waited.succeeded) return waited;
    return copied(call("mnk_completion_copy_text", [&] { return mnk_completion_copy_text(completion_); }));
  }
  void dropEncoder() override {
    drop(encoder_);
    drop(completion_);
  }

  Status makeRecording() override { return MAKE(encoder_, mnk_encoder_make_recording, device_, "a step"); }
  Status makeStep() override { return MAKE(step_, mnk_recorded_step_make, encoder_); }
  Status encodeStep() override { return RUN(mnk_encoder_encode_step, encoder_, step_); }
  Status runStep(std::atomic<int>& finished) override {
    return MAKE(completion_, mnk_recorded_step_run, step_, countFinished, &finished);
  }

  Status makeCache(bool isQuantized, uint32_t capacity) override {
    const mnk_attention_cache_descriptor descriptor{
        .kv_heads = kHeads,
        .head_dim = kHeadDim,
        .capacity = capacity,
        .sequences = kSequences,
        .dtype = MNK_F32,
        .has_quantized = isQuantized,
        .quantized = {.key_bits = isQuantized ? 4u : 0, .value_bits = isQuantized ? 4u : 0}};
    return MAKE(cache_, mnk_cache_make, device_, &descriptor);
  }
  Status append(uint32_t sequence) override {
    const mnk_cache_step step{
        .keys = view(kKeys), .values = view(kValues), .sequences = &sequence, .sequence_count = 1};
    return RUN(mnk_encoder_append, encoder_, cache_, &step);
  }
  Status attend(uint32_t sequence) override {
    const mnk_cache_step step{.queries = view(kQueries),
                              .sequences = &sequence,
                              .sequence_count = 1,
                              .results = {.output = tensors_[kAttended]}};
    return RUN(mnk_encoder_attend, encoder_, cache_, &step);
  }
  Status appendRows(std::span<const uint32_t> sequences) override {
    const mnk_cache_step step{.keys = view(kRowKeys),
                              .values = view(kRowValues),
                              .sequences = sequences.data(),
                              .sequence_count = sequences.size()};
    return RUN(mnk_encoder_append, encoder_, cache_, &step);
  }
  Status attendRows(std::span<const uint32_t> sequences) override {
    const mnk_cache_step step{.queries = view(kRowQueries),
                              .sequences = sequences.data(),
                              .sequence_count = sequences.size(),
                              .results = {.output = tensors_[kRowAttended]}};
    return RUN(mnk_encoder_attend, encoder_, cache_, &step);
  }
  Status appendAndAttend(uint32_t sequence, Rotation rotation) override {
    constexpr uint32_t kRows = kTokens;
    mnk_rotary_step rotary{.embedding = kRotary};
    if (rotation == Rotation::listed)
      rotary.positions = {.cache = cache_, .sequences = &sequence, .row_counts = &kRows, .sequence_count = 1};
    const mnk_cache_step step{.queries = view(kQueries),
                              .keys = view(kKeys),
                              .values = view(kValues),
                              .sequences = &sequence,
                              .sequence_count = 1,
                              .results = {.output = tensors_[kAttended]},
                              .has_rotary = rotation != Rotation::none,
                              .rotary = rotation == Rotation::none ? mnk_rotary_step{} : rotary};
    return RUN(mnk_encoder_append_and_attend, encoder_, cache_, &step);
  }
  Status copy(uint32_t source, uint32_t target) override {
    return RUN(mnk_encoder_copy_sequence, encoder_, cache_, source, target);
  }
  Status grow(uint32_t capacity) override {
    return MAKE(larger_, mnk_encoder_make_grown_cache, encoder_, cache_, capacity);
  }
  Status copyToLarger(uint32_t source, uint32_t target) override {
    return RUN(mnk_encoder_copy_sequence_to_cache, encoder_, cache_, source, larger_, target);
  }
  Status dequantize(uint32_t sequence) override {
    return RUN(mnk_encoder_dequantize, encoder_, cache_, tensors_[kReadKeys], tensors_[kReadValues], 0, sequence,
               MNK_KV_DOMAIN_ORIGINAL);
  }
  Status truncate(uint64_t position, uint32_t sequence) override {
    return RUN(mnk_cache_truncate, cache_, position, sequence);
  }
  Status prepare(const char* tuningFile, uint32_t rows) override {
    const mnk_cache* caches[] = {cache_};
    const mnk_preparation preparation{.caches = caches,
                                      .cache_count = 1,
                                      .rows = rows,
                                      .dtype = MNK_F32,
                                      .has_rotary = true,
                                      .rotary = kRotary,
                                      .tuning = MNK_TUNING_MEASURE,
                                      .tuning_file = tuningFile};
    return RUN(mnk_device_prepare, device_, &preparation, nullptr);
  }
  Status text() override {
    return copied(call("mnk_cache_copy_text", [&] { return mnk_cache_copy_text(cache_); }));
  }
  Status save(const char* path) override { return RUN(mnk_cache_save, cache_, path); }
  Status load(const char* path) override { return MAKE(cache_, mnk_cache_make_from_path, device_, path, 1 << 20, 0); }
  uint64_t position(uint32_t sequence) override { return stateOf(sequence).next_position; }
  bool isSuspect(uint32_t sequence) override { return stateOf(sequence).is_suspect; }
  void dropCache() override {
    drop(cache_);
    drop(larger_);
  }

  void dropTensors() override {
    dropEncoder();
    drop(step_);
    dropCache();
    for (mnk_tensor*& tensor : tensors_) drop(tensor);
  }
  void dropDevice() override { drop(device_); }

 private:
  mnk_sequence_state stateOf(uint32_t sequence) const {
    mnk_sequence_state state{};
    mnk_cache_get_sequence(cache_, sequence, &state, nullptr);
    return state;
  }

  mnk_device* device_ = nullptr;
  std::array<mnk_tensor*, kNames> tensors_ = {};
  mnk_encoder* encoder_ = nullptr;
  mnk_completion* completion_ = nullptr;
  mnk_recorded_step* step_ = nullptr;
  mnk_cache* cache_ = nullptr;
  mnk_cache* larger_ = nullptr;
};

}  // namespace

std::unique_ptr<Session> makeCSession() {
  return std::make_unique<CSession>();
}

}  // namespace mnk::inject
