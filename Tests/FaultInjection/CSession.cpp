#include "COps.hpp"
#include "MLXNativeKernels/mnk_metal.h"

namespace mnk::inject {

namespace {

// The error that a call stored, or a placeholder if it stored none.
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

// A call that returns an object, which replaces `kept`.
template <typename Handle, typename Body>
Status make(const char* name, Handle*& kept, void (*release)(Handle*), Body body) {
  mnk_error* error = nullptr;
  Handle* handle = call(name, [&] { return body(&error); });
  if (!handle) return failure(error);
  call("release", [&] { release(kept); });
  kept = handle;
  return {};
}

// Releases a text that the caller owns; null means that memory was exhausted.
Status copied(char* text) {
  if (!text) return {false, ErrorCode::outOfMemory, "no text"};
  mnk_text_release(text);
  return {};
}

template <typename Handle>
void drop(const char* name, Handle*& kept, void (*release)(Handle*)) {
  call(name, [&] { release(kept); });
  kept = nullptr;
}

class CSession final : public Session {
 public:
  Status makeDevice(bool isMetal) override {
    return make("mnk_device_make", device_, mnk_device_release, [&](mnk_error_out error) {
      const mnk_host_options onHost{.size = sizeof onHost, .workers = 2};
      const mnk_metal_options onMetal{.size = sizeof onMetal};
      return isMetal ? mnk_device_make_metal(&onMetal, error) : mnk_device_make_host(&onHost, error);
    });
  }

  Status compile() override {
    mnk_library* library = nullptr;
    const Status status = make("mnk_library_make_from_text", library, mnk_library_release, [&](mnk_error_out error) {
      return mnk_library_make_from_text(device_, kKernelText, "a label that is longer than any string", error);
    });
    drop("mnk_library_release", library, mnk_library_release);
    call("mnk_device_clear_kernels", [&] { mnk_device_clear_kernels(device_); });
    return status;
  }
  Status makeTensor(Name name) override {
    const About& about = kAbout[name];
    return make("mnk_tensor_make", tensors_[name], mnk_tensor_release, [&](mnk_error_out error) {
      const mnk_dtype dtype = about.kind == Kind::f32 ? MNK_F32 : about.kind == Kind::f16 ? MNK_F16 : MNK_U8;
      return mnk_tensor_make(device_, dtype, about.shape.data(), about.rank, error);
    });
  }
  Status wrap(Name name, void* memory, uint64_t bytes, std::atomic<int>& released) override {
    return make("mnk_tensor_make_wrapping", tensors_[name], mnk_tensor_release, [&](mnk_error_out error) {
      const auto release = [](void* context) { ++*static_cast<std::atomic<int>*>(context); };
      return mnk_tensor_make_wrapping(device_, memory, bytes, MNK_F32, kAbout[name].shape.data(), kAbout[name].rank, 0,
                                      release, &released, error);
    });
  }
  Status slice(Name name, Name of, uint64_t begin, uint64_t count) override {
    return make("mnk_tensor_make_slice", tensors_[name], mnk_tensor_release,
                [&](mnk_error_out error) { return mnk_tensor_make_slice(tensors_[of], begin, count, error); });
  }
  Status reshape(Name name, Name of) override {
    return make("mnk_tensor_make_reshaped", tensors_[name], mnk_tensor_release, [&](mnk_error_out error) {
      return mnk_tensor_make_reshaped(tensors_[of], kAbout[name].shape.data(), kAbout[name].rank, error);
    });
  }
  Status write(Name name, std::span<const float> from) override {
    return run("mnk_tensor_write", [&](mnk_error_out error) {
      return mnk_tensor_write(tensors_[name], from.data(), from.size_bytes(), error);
    });
  }
  Status read(Name name, std::span<float> into) override {
    return run("mnk_tensor_read", [&](mnk_error_out error) {
      return mnk_tensor_read(tensors_[name], into.data(), into.size_bytes(), error);
    });
  }

  Status plan(Op op) override {
    COps ops(tensors_);
    mnk_plan* plan = nullptr;
    const Status status = make("mnk_…_make_plan", plan, mnk_plan_release,
                               [&](mnk_error_out error) { return ops.plan(op, device_, error); });
    if (!status.succeeded) return status;
    call("mnk_plan_dispatch", [&] { return mnk_plan_dispatch(plan, 0).bytes_read + *mnk_plan_text(plan); });
    drop("mnk_plan_release", plan, mnk_plan_release);
    return {};
  }
  Status makeEncoder() override {
    return make("mnk_encoder_make", encoder_, mnk_encoder_release, [&](mnk_error_out error) {
      return mnk_encoder_make(device_, "a label that is longer than any string holds in place", error);
    });
  }
  Status measureOps() override {
    return run("mnk_encoder_measure_ops",
               [&](mnk_error_out error) { return mnk_encoder_measure_ops(encoder_, error); });
  }
  Status encode(Op op) override {
    COps ops(tensors_);
    return run("mnk_encoder_…", [&](mnk_error_out error) { return ops.encode(op, encoder_, error); });
  }
  Status commit(std::atomic<int>& finished) override {
    return make("mnk_encoder_commit", completion_, mnk_completion_release, [&](mnk_error_out error) {
      const auto count = [](void* context, const mnk_error*) { ++*static_cast<std::atomic<int>*>(context); };
      return mnk_encoder_commit(encoder_, count, &finished, error);
    });
  }
  Status wait() override {
    const Status waited =
        run("mnk_completion_wait", [&](mnk_error_out error) { return mnk_completion_wait(completion_, error); });
    if (!waited.succeeded) return waited;
    return copied(call("mnk_completion_copy_text", [&] { return mnk_completion_copy_text(completion_); }));
  }
  void dropEncoder() override {
    drop("mnk_encoder_release", encoder_, mnk_encoder_release);
    drop("mnk_completion_release", completion_, mnk_completion_release);
  }

  Status makeRecording() override {
    return make("mnk_encoder_make_recording", encoder_, mnk_encoder_release,
                [&](mnk_error_out error) { return mnk_encoder_make_recording(device_, "a step", error); });
  }
  Status makeStep() override {
    return make("mnk_recorded_step_make", step_, mnk_recorded_step_release,
                [&](mnk_error_out error) { return mnk_recorded_step_make(encoder_, error); });
  }
  Status encodeStep() override {
    return run("mnk_encoder_encode_step",
               [&](mnk_error_out error) { return mnk_encoder_encode_step(encoder_, step_, error); });
  }
  Status runStep(std::atomic<int>& finished) override {
    return make("mnk_recorded_step_run", completion_, mnk_completion_release, [&](mnk_error_out error) {
      const auto count = [](void* context, const mnk_error*) { ++*static_cast<std::atomic<int>*>(context); };
      return mnk_recorded_step_run(step_, count, &finished, error);
    });
  }
  uint64_t runs() override { return mnk_recorded_step_runs(step_); }
  void setRuns(uint64_t runs) override { mnk_recorded_step_set_runs(step_, runs); }

  Status makeCache(bool isQuantized) override {
    const mnk_cache_quantization quantization{.size = sizeof quantization, .codec = MNK_TURBO, .key_bits = 4};
    const mnk_cache_descriptor descriptor{.size = sizeof descriptor,
                                          .kv_heads = kHeads,
                                          .head_dim = kHeadDim,
                                          .capacity = kCapacity,
                                          .sequences = kSequences,
                                          .dtype = MNK_F32,
                                          .quantization = isQuantized ? &quantization : nullptr};
    return make("mnk_cache_make", cache_, mnk_cache_release,
                [&](mnk_error_out error) { return mnk_cache_make(device_, &descriptor, error); });
  }
  Status append(uint32_t sequence) override {
    return run("mnk_encoder_append", [&](mnk_error_out error) {
      return mnk_encoder_append(encoder_, cache_, tensors_[kKeys], tensors_[kValues], sequence, error);
    });
  }
  Status attend(uint32_t sequence) override {
    const mnk_attention_results results{.size = sizeof results, .into = tensors_[kAttended]};
    return run("mnk_encoder_attend", [&](mnk_error_out error) {
      return mnk_encoder_attend(encoder_, cache_, tensors_[kQueries], &results, nullptr, sequence, error);
    });
  }
  Status appendRows(std::span<const uint32_t> sequences) override {
    return run("mnk_encoder_append_rows", [&](mnk_error_out error) {
      return mnk_encoder_append_rows(encoder_, cache_, tensors_[kRowKeys], tensors_[kRowValues], sequences.data(),
                                     sequences.size(), error);
    });
  }
  Status attendRows(std::span<const uint32_t> sequences) override {
    const mnk_attention_results results{.size = sizeof results, .into = tensors_[kRowAttended]};
    const mnk_cache_step step{.size = sizeof step,
                              .queries = view(kRowQueries),
                              .sequences = sequences.data(),
                              .sequence_count = sequences.size(),
                              .results = &results};
    return run("mnk_encoder_attend_step",
               [&](mnk_error_out error) { return mnk_encoder_attend_step(encoder_, cache_, &step, error); });
  }
  Status appendAndAttend(uint32_t sequence, bool isRotated) override {
    const mnk_rotary_step rotary{
        .size = sizeof rotary,
        .embedding = {.size = sizeof(mnk_rotary_embedding), .layout = MNK_HALF_SPLIT, .base = 10000, .scale = 1}};
    const mnk_attention_results results{.size = sizeof results, .into = tensors_[kAttended]};
    const mnk_cache_step step{.size = sizeof step,
                              .queries = view(kQueries),
                              .keys = view(kKeys),
                              .values = view(kValues),
                              .sequences = &sequence,
                              .sequence_count = 1,
                              .results = &results,
                              .rotary = isRotated ? &rotary : nullptr};
    return run("mnk_encoder_append_and_attend",
               [&](mnk_error_out error) { return mnk_encoder_append_and_attend(encoder_, cache_, &step, error); });
  }
  Status copy(uint32_t source, uint32_t target) override {
    return run("mnk_encoder_copy_sequence",
               [&](mnk_error_out error) { return mnk_encoder_copy_sequence(encoder_, cache_, source, target, error); });
  }
  Status dequantize(uint32_t sequence) override {
    return run("mnk_encoder_dequantize", [&](mnk_error_out error) {
      return mnk_encoder_dequantize(encoder_, cache_, tensors_[kReadKeys], tensors_[kReadValues], 0, sequence,
                                    MNK_ORIGINAL_DOMAIN, error);
    });
  }
  Status truncate(uint64_t position, uint32_t sequence) override {
    return run("mnk_cache_truncate",
               [&](mnk_error_out error) { return mnk_cache_truncate(cache_, position, sequence, error); });
  }
  Status prepare(const char* tuningFile) override {
    const mnk_rotary_embedding rotary{.size = sizeof rotary, .layout = MNK_HALF_SPLIT, .base = 10000, .scale = 1};
    const mnk_cache* caches[] = {cache_};
    const mnk_preparation preparation{.size = sizeof preparation,
                                      .caches = caches,
                                      .cache_count = 1,
                                      .rows = kTokens,
                                      .dtype = MNK_F32,
                                      .rotary = &rotary,
                                      .tuning = MNK_TUNING_MEASURE,
                                      .tuning_file = tuningFile};
    return run("mnk_device_prepare",
               [&](mnk_error_out error) { return mnk_device_prepare(device_, &preparation, nullptr, error); });
  }
  Status text() override {
    return copied(call("mnk_cache_copy_text", [&] { return mnk_cache_copy_text(cache_); }));
  }
  Status save(const char* path) override {
    return run("mnk_cache_save", [&](mnk_error_out error) { return mnk_cache_save(cache_, path, error); });
  }
  Status load(const char* path) override {
    return make("mnk_cache_make_from_path", cache_, mnk_cache_release,
                [&](mnk_error_out error) { return mnk_cache_make_from_path(device_, path, 1 << 20, error); });
  }
  uint64_t position(uint32_t sequence) override { return mnk_cache_next_position(cache_, sequence); }
  bool isSuspect(uint32_t sequence) override { return mnk_cache_is_suspect(cache_, sequence); }
  void dropCache() override { drop("mnk_cache_release", cache_, mnk_cache_release); }

  void dropTensors() override {
    dropEncoder();
    drop("mnk_recorded_step_release", step_, mnk_recorded_step_release);
    dropCache();
    for (mnk_tensor*& tensor : tensors_) drop("mnk_tensor_release", tensor, mnk_tensor_release);
  }
  void dropDevice() override { drop("mnk_device_release", device_, mnk_device_release); }

 private:
  mnk_heads_view view(Name name) const { return viewOf(tensors_[name]); }

  mnk_device* device_ = nullptr;
  COps::Tensors tensors_ = {};
  mnk_encoder* encoder_ = nullptr;
  mnk_completion* completion_ = nullptr;
  mnk_recorded_step* step_ = nullptr;
  mnk_cache* cache_ = nullptr;
};

}  // namespace

std::unique_ptr<Session> makeCSession() {
  return std::make_unique<CSession>();
}

}  // namespace mnk::inject
