#include <optional>

#include "MLXNativeKernels/HostDevice.hpp"
#include "MLXNativeKernels/MLXNativeKernels.hpp"
#include "MLXNativeKernels/MetalDevice.hpp"
#include "Session.hpp"

namespace mnk::inject {

namespace {

Status failure(const Error& error) {
  return {false, error.code, error.message()};
}

template <typename T>
Status statusOf(const Result<T>& result) {
  return result ? Status() : failure(result.error());
}

// Moves the result of a call into `kept`.
template <typename T, typename Kept>
Status keep(Result<T> result, Kept& kept) {
  if (!result) return failure(result.error());
  kept = std::move(*result);
  return {};
}

// For functions that return plain values, which may throw only this exception.
template <typename Body>
Status callForValue(const char* name, Body&& body) {
  try {
    call(name, body);
    return {};
  } catch (const std::bad_alloc&) {
    return {false, ErrorCode::outOfMemory, "std::bad_alloc"};
  }
}

// A call that is named after its own text.
#define CALL(...) call(#__VA_ARGS__, [&] { return __VA_ARGS__; })

DType dtypeOf(Kind kind) {
  return kind == Kind::f32 ? DType::f32 : kind == Kind::f16 ? DType::f16 : DType::u8;
}

class CppSession final : public Session {
 public:
  Status makeDevice(bool isMetal) override {
    const host::Options onHost{.workers = 2, .checking = host::Checking::off, .compiler = {}};
    const metal::Options onMetal{.libraryPath = {}};
    return keep(CALL(isMetal ? metal::makeDevice(onMetal) : host::makeDevice(onHost)), device_);
  }

  Status compile() override {
    const LibrarySource source{.value = kKernelText, .label = "a label that is longer than any string holds in place"};
    const auto library = CALL(device_->registry().library(source));
    call("KernelRegistry::clear", [&] { device_->registry().clear(); });
    return statusOf(library);
  }
  Status makeTensor(Name name) override {
    return makeShaped("Tensor::zeros", name,
                      [&](const Shape& shape) { return Tensor::zeros(device_, dtypeOf(kAbout[name].kind), shape); });
  }
  Status wrap(Name name, void* memory, uint64_t bytes, std::atomic<int>& released) override {
    return makeShaped("Device::wrapMemory", name, [&](const Shape& shape) -> Result<Tensor> {
      auto buffer = device_->wrapMemory(memory, bytes, [&released] { ++released; });
      if (!buffer) return std::move(buffer).error();
      return Tensor::over(std::move(*buffer), DType::f32, shape);
    });
  }
  Status slice(Name name, Name of, uint64_t begin, uint64_t count) override {
    return keep(CALL(tensors_[of].slice(begin, count)), tensors_[name]);
  }
  Status reshape(Name name, Name of) override {
    return makeShaped("Tensor::reshaped", name, [&](const Shape& shape) { return tensors_[of].reshaped(shape); });
  }
  Status write(Name name, std::span<const float> from) override {
    return statusOf(CALL(tensors_[name].write(std::as_bytes(from))));
  }
  Status read(Name name, std::span<float> into) override {
    return statusOf(CALL(tensors_[name].read(std::as_writable_bytes(into))));
  }

  Status plan(Op op) override {
    return withOp(op, [&](const auto& typedOp) {
      auto planned = CALL(mnk::plan(typedOp));
      if (!planned) return failure(planned.error());
      return callForValue("Plan::text", [&] { return planned->text(); });
    });
  }
  Status makeEncoder() override {
    return callForValue("CommandEncoder", [&] {
      encoder_ = std::make_unique<CommandEncoder>(device_, "a label that is longer than any string holds in place");
    });
  }
  Status measureOps() override { return statusOf(CALL(encoder_->measureOps())); }
  Status encode(Op op) override {
    return withOp(op, [&](const auto& typedOp) { return statusOf(CALL(encoder_->encode(typedOp))); });
  }
  Status commit(std::atomic<int>& finished) override {
    return keep(CALL(encoder_->commit([&finished](const Result<Summary>&) { ++finished; })), completion_);
  }
  Status wait() override { return statusOf(CALL(completion_.wait())); }
  void dropEncoder() override {
    call("~CommandEncoder", [&] {
      encoder_.reset();
      completion_ = {};
    });
  }

  Status makeRecording() override {
    return callForValue("StepRecording::begin", [&] {
      encoder_ = std::make_unique<CommandEncoder>(device_, "a step");
      StepRecording::begin(*encoder_);
    });
  }
  Status makeStep() override { return keep(CALL(StepRecording::end(*encoder_)), step_); }
  Status encodeStep() override { return statusOf(CALL(step_.encode(*encoder_))); }
  Status runStep(std::atomic<int>& finished) override {
    return keep(CALL(step_.run([&finished](const Result<Summary>&) { ++finished; })), completion_);
  }

  Status makeCache(bool isQuantized, uint32_t capacity) override {
    AttentionCacheDescriptor descriptor{
        .kvHeads = kHeads, .headDim = kHeadDim, .capacity = capacity, .sequences = kSequences, .dtype = DType::f32};
    if (isQuantized) descriptor.quantized = KVQuantizedStorage{};
    return keep(CALL(AttentionCache::make(device_, descriptor)), cache_);
  }
  Status prepare(const char* tuningFile, uint32_t rows) override {
    const Preparation preparation{.caches = {*cache_},
                                  .rows = rows,
                                  .rotary = RotaryEmbedding{},
                                  .tuning = Tuning::measure,
                                  .tuningFile = tuningFile};
    return statusOf(CALL(mnk::prepare(device_, preparation)));
  }
  Status append(uint32_t sequence) override {
    const HeadsView keys(tensors_[kKeys]), values(tensors_[kValues]);
    return statusOf(CALL(cache_->append(*encoder_, keys, values, sequence)));
  }
  Status attend(uint32_t sequence) override {
    const HeadsView queries(tensors_[kQueries]);
    return statusOf(CALL(cache_->attend(*encoder_, queries, {.into = tensors_[kAttended]}, {}, sequence)));
  }
  Status appendRows(std::span<const uint32_t> sequences) override {
    const HeadsView keys(tensors_[kRowKeys]), values(tensors_[kRowValues]);
    return statusOf(CALL(cache_->append(*encoder_, {.keys = keys, .values = values, .sequences = sequences})));
  }
  Status attendRows(std::span<const uint32_t> sequences) override {
    const HeadsView queries(tensors_[kRowQueries]);
    return statusOf(CALL(cache_->attend(*encoder_, {.queries = queries, .results = {.into = tensors_[kRowAttended]}, .sequences = sequences})));
  }
  Status appendAndAttend(uint32_t sequence, Rotation rotation) override {
    std::optional<RotaryStep> rotary;
    if (rotation != Rotation::none) rotary.emplace();
    if (rotation == Rotation::listed) {
      const Status made = nextPositions({sequence}, {kTokens}, rotary->positions);
      if (!made.succeeded) return made;
    }
    const CacheStep step{.queries = HeadsView(tensors_[kQueries]),
                               .keys = HeadsView(tensors_[kKeys]),
                               .values = HeadsView(tensors_[kValues]),
                               .rotary = rotary,
                               .results = {.into = tensors_[kAttended]},
                               .sequence = sequence};
    return statusOf(CALL(cache_->appendAndAttend(*encoder_, step)));
  }
  Status copy(uint32_t source, uint32_t target) override {
    return statusOf(CALL(cache_->copy(*encoder_, source, target)));
  }
  Status grow(uint32_t capacity) override { return keep(CALL(cache_->grown(*encoder_, capacity)), larger_); }
  Status copyToLarger(uint32_t source, uint32_t target) override {
    return statusOf(CALL(cache_->copy(*encoder_, source, *larger_, target)));
  }
  Status dequantize(uint32_t sequence) override {
    return statusOf(CALL(cache_->dequantize(*encoder_, tensors_[kReadKeys], tensors_[kReadValues], 0, sequence)));
  }
  Status truncate(uint64_t position, uint32_t sequence) override {
    return statusOf(CALL(cache_->truncate(position, sequence)));
  }
  Status text() override {
    return callForValue("AttentionCache::text", [&] { return cache_->text(); });
  }
  Status save(const char* path) override {
    const std::string file = path;
    return statusOf(CALL(cache_->save(file)));
  }
  Status load(const char* path) override {
    const std::string file = path;
    return keep(CALL(AttentionCache::load(device_, file, 1 << 20)), cache_);
  }
  uint64_t position(uint32_t sequence) override { return *cache_->nextPosition(sequence); }
  bool isSuspect(uint32_t sequence) override { return cache_->isSuspect(sequence); }
  void dropCache() override {
    call("~AttentionCache", [&] {
      cache_.reset();
      larger_.reset();
    });
  }

  void dropTensors() override {
    dropEncoder();
    call("~RecordedStep", [&] { step_ = {}; });
    dropCache();
    call("~Tensor", [&] { tensors_ = {}; });
  }
  void dropDevice() override {
    call("~Device", [&] { device_.reset(); });
  }

 private:
  template <typename Body>
  Status makeShaped(const char* call, Name name, Body body) {
    return keep(inject::call(call,
                             [&]() -> Result<Tensor> {
                               auto shape = Shape::make(std::span(kAbout[name].shape).first(kAbout[name].rank));
                               if (!shape) return std::move(shape).error();
                               return body(*shape);
                             }),
                tensors_[name]);
  }
  Status nextPositions(std::vector<uint32_t> sequences, std::vector<uint32_t> rowCounts,
                       std::optional<RotaryPositions>& into) {
    return callForValue("AttentionCache::nextPositions", [&] { into = cache_->nextPositions(sequences, rowCounts); });
  }
  KVCacheView dense() const { return {.keys = tensors_[kDenseKeys], .values = tensors_[kDenseValues]}; }
  QuantizedKVCacheView quantized() const {
    return {.keys = {.codes = tensors_[kKeyCodes], .scales = tensors_[kKeyScales]},
            .values = QuantizedKVPlane{.codes = tensors_[kValueCodes], .scales = tensors_[kValueScales]}};
  }
  FlashDecode decode(std::variant<KVCacheView, QuantizedKVCacheView> over, AttentionResults results) const {
    return {.queries = HeadsView(tensors_[kQueries]),
            .over = std::move(over),
            .sequences = {{.sequence = 0, .length = kTokens, .position = 0}},
            .results = std::move(results)};
  }

  template <typename Body>
  Status withOp(Op op, Body body) {
    const HeadsView keys(tensors_[kKeys]), values(tensors_[kValues]);
    switch (op) {
      case Op::write:
        return body(KVCacheWrite{.keys = keys, .values = values, .into = dense()});
      case Op::quantize:
        return body(KVCacheQuantize{.keys = keys, .values = values, .into = quantized()});
      case Op::dequantize:
        return body(
            KVCacheDequantize{.from = quantized(), .keys = tensors_[kReadKeys], .values = tensors_[kReadValues]});
      case Op::hadamard:
        return body(Hadamard{.from = tensors_[kWrapped], .into = tensors_[kTurned], .signs = KVCodecName::turbo});
      case Op::attend:
        return body(decode(dense(), {.into = tensors_[kAttended]}));
      case Op::attendQuantized:
        return body(decode(quantized(), {.into = tensors_[kAttendedQuantized]}));
      case Op::attendPartials:
        return body(decode(dense(), {.partials = AttentionPartials{tensors_[kPartSums], tensors_[kPartStats]}}));
      case Op::merge:
        return body(MergePartials{.partials = {tensors_[kPartialSums], tensors_[kPartialStats]},
                                  .results = {.into = tensors_[kMerged]}});
      case Op::rope:
        return body(MultiRoPE{.queries = HeadsView(tensors_[kQueries]),
                              .keys = keys,
                              .rotatedQueries = HeadsView(tensors_[kRotatedQueries]),
                              .rotatedKeys = HeadsView(tensors_[kRotatedKeys]),
                              .positions = RotaryPositions(7)});
      case Op::ropeNext: {
        std::optional<RotaryPositions> next;
        const Status made = nextPositions({1, 1}, {1, kTokens - 1}, next);
        if (!made.succeeded) return made;
        return body(MultiRoPE{.queries = HeadsView(tensors_[kQueries]),
                              .keys = keys,
                              .rotatedQueries = HeadsView(tensors_[kRotatedQueries]),
                              .rotatedKeys = HeadsView(tensors_[kRotatedKeys]),
                              .positions = *next});
      }
      case Op::broken:
        return body(KVCacheWrite{.keys = keys, .values = values, .into = dense(), .position = kCapacity});
    }
    return {};
  }

  std::shared_ptr<Device> device_;
  std::array<Tensor, kNames> tensors_;
  std::unique_ptr<CommandEncoder> encoder_;
  Completion completion_;
  RecordedStep step_;
  std::optional<AttentionCache> cache_, larger_;
};

}  // namespace

std::unique_ptr<Session> makeCppSession() {
  return std::make_unique<CppSession>();
}

}  // namespace mnk::inject
