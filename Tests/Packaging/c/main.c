// Tests the C API from C: writes a ring and reads it back, rotates keys and back, fills, reads and attends to a
// quantized cache, and checks that invalid calls return errors in four parts. Prints each failure with its line and
// exits with status 1 if there was one.
#include <MLXNativeKernels/mnk.h>
#include <stdio.h>
#include <string.h>

enum { kHeads = 2, kHeadDim = 8, kCapacity = 4, kTokens = 3, kPosition = 6 };
enum { kTokenFloats = kHeads * kHeadDim, kCacheFloats = kHeads * kCapacity * kHeadDim };

static int faults = 0;

static void check(bool holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "main.c:%d: not true: %s\n", line, text);
  faults += 1;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

// Checks a call that must succeed.
static void checkNone(mnk_error* error, int line) {
  if (error) {
    fprintf(stderr, "main.c:%d: %s\n", line, mnk_error_message(error));
    faults += 1;
  }
  mnk_error_release(error);
}
#define CHECK_NONE(error) checkNone(error, __LINE__)

// Checks that a call failed with all parts of an error, which names the op.
static void checkParts(mnk_error* error, mnk_error_code code, const char* name, int line) {
  check(error != NULL, "an error is given", line);
  if (!error) return;
  check(mnk_error_get_code(error) == code, "the error has the expected code", line);
  check(strstr(mnk_error_message(error), name) != NULL, "the message has the expected name", line);
  check(mnk_error_op(error)[0] != '\0', "the error says who refused", line);
  check(mnk_error_what(error)[0] != '\0', "the error says what", line);
  check(mnk_error_got(error)[0] != '\0', "the error says what it got", line);
  check(mnk_error_expected(error)[0] != '\0', "the error says what it expected", line);
  check(mnk_error_fix(error)[0] != '\0', "the error says how to fix it", line);
  check(strstr(mnk_error_message(error), mnk_error_what(error)) != NULL, "the message holds the parts", line);
  check(!mnk_error_is_retryable(error), "a broken rule stays broken", line);
  mnk_error_release(error);
}
#define CHECK_PARTS(error, code, name) checkParts(error, code, name, __LINE__)

typedef struct {
  mnk_device* device;
  mnk_tensor *keys, *values, *cachedKeys, *cachedValues;
} Fixture;

static mnk_tensor* makeTensor(mnk_device* device, uint64_t outer, uint64_t middle, uint64_t inner) {
  const uint64_t shape[] = {outer, middle, inner};
  mnk_error* error = NULL;
  mnk_tensor* tensor = mnk_tensor_make(device, MNK_F32, shape, 3, &error);
  CHECK_NONE(error);
  return tensor;
}

static mnk_kv_cache_write ringWrite(const Fixture* f) {
  return (mnk_kv_cache_write){
      .size = sizeof(mnk_kv_cache_write),
      .keys = f->keys,
      .values = f->values,
      .source_layout = MNK_TOKEN_MAJOR,
      .into = {.size = sizeof(mnk_kv_cache_view),
               .keys = f->cachedKeys,
               .values = f->cachedValues,
               .layout = MNK_HEAD_MAJOR,
               .wrap = MNK_RING},
      .position = kPosition,
  };
}

// Every element differs, and none is zero as new memory is.
static float element(int which, int token, int head, int e) {
  return (float)(1 + which * 1000 + token * 100 + head * 10) + (float)e / 16;
}

static void fillSource(mnk_tensor* tensor, int which) {
  float source[kTokens * kTokenFloats];
  for (int t = 0; t < kTokens; ++t)
    for (int h = 0; h < kHeads; ++h)
      for (int e = 0; e < kHeadDim; ++e) source[(t * kHeads + h) * kHeadDim + e] = element(which, t, h, e);
  mnk_error* error = NULL;
  CHECK(mnk_tensor_write(tensor, source, sizeof source, &error));
  CHECK_NONE(error);
}

static void checkCache(const mnk_tensor* tensor, int which) {
  float expected[kCacheFloats] = {0};
  for (int t = 0; t < kTokens; ++t)
    for (int h = 0; h < kHeads; ++h)
      for (int e = 0; e < kHeadDim; ++e)
        expected[(h * kCapacity + (kPosition + t) % kCapacity) * kHeadDim + e] = element(which, t, h, e);
  float got[kCacheFloats];
  mnk_error* error = NULL;
  CHECK(mnk_tensor_read(tensor, got, sizeof got, &error));
  CHECK_NONE(error);
  for (int i = 0; i < kCacheFloats; ++i) {
    if (got[i] == expected[i]) continue;
    fprintf(stderr, "cache %d, head %d, slot %d, element %d: got %g, expected %g\n", which, i / (kCapacity * kHeadDim),
            i / kHeadDim % kCapacity, i % kHeadDim, (double)got[i], (double)expected[i]);
    faults += 1;
    return;
  }
}

static void testRingWrite(const Fixture* f) {
  fillSource(f->keys, 0);
  fillSource(f->values, 1);
  const mnk_kv_cache_write write = ringWrite(f);
  mnk_error* error = NULL;
  mnk_encoder* encoder = mnk_encoder_make(f->device, "c api", &error);
  CHECK_NONE(error);
  if (!encoder) return;

  error = NULL;
  CHECK(mnk_encoder_kv_cache_write(encoder, &write, &error));
  CHECK_NONE(error);
  error = NULL;
  mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, &error);
  CHECK_NONE(error);
  CHECK(completion != NULL);

  // A committed encoder cannot be reused, which is an error and not a crash.
  error = NULL;
  CHECK(!mnk_encoder_kv_cache_write(encoder, &write, &error));
  CHECK(error != NULL);
  mnk_error_release(error);

  // Objects retain what they need, so the encoder can be released before its work has finished.
  mnk_encoder_release(encoder);
  if (!completion) return;
  error = NULL;
  CHECK(mnk_completion_wait(completion, &error));
  CHECK_NONE(error);
  CHECK(mnk_completion_is_done(completion));
  CHECK(mnk_completion_summary(completion).total.dispatches == 1);
  CHECK(mnk_completion_counts(completion, "KVCacheWrite").bytes_written == 2 * kTokens * kTokenFloats * sizeof(float));
  char* text = mnk_completion_copy_text(completion);
  CHECK(text && strstr(text, "dispatch") != NULL);
  mnk_text_release(text);
  mnk_completion_release(completion);

  checkCache(f->cachedKeys, 0);
  checkCache(f->cachedValues, 1);
}

// Rotates the keys in place and back.
static void testRotation(const Fixture* f) {
  float before[kTokens * kTokenFloats], turned[kTokens * kTokenFloats], after[kTokens * kTokenFloats];
  fillSource(f->keys, 0);
  CHECK(mnk_tensor_read(f->keys, before, sizeof before, NULL));
  mnk_multi_rope rope = {
      .size = sizeof rope,
      .queries = {.size = sizeof rope.queries, .tensor = f->keys, .layout = MNK_TOKEN_MAJOR},
      .first_position = 100000,
      .rotary = {.size = sizeof rope.rotary, .layout = MNK_HALF_SPLIT, .base = 10000, .scale = 1},
  };
  for (int round = 0; round < 2; ++round) {
    rope.rotary.is_inverse = round == 1;
    mnk_error* error = NULL;
    mnk_encoder* encoder = mnk_encoder_make(f->device, NULL, NULL);
    CHECK(mnk_encoder_multi_rope(encoder, &rope, &error));
    CHECK_NONE(error);
    mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, NULL);
    CHECK(mnk_completion_wait(completion, NULL));
    CHECK(mnk_tensor_read(f->keys, round == 0 ? turned : after, sizeof after, NULL));
    mnk_completion_release(completion);
    mnk_encoder_release(encoder);
  }
  CHECK(memcmp(turned, before, sizeof before) != 0);
  for (int i = 0; i < kTokens * kTokenFloats; ++i) {
    const float error = after[i] - before[i];
    CHECK(error < 1e-3f && error > -1e-3f);
  }
  mnk_error* error = NULL;
  rope.rotary.base = -1;
  CHECK(mnk_multi_rope_make_plan(&rope, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "MultiRoPE");
}

// Encodes one op and waits for it.
#define RUN(device, function, op)                                               \
  do {                                                                          \
    mnk_error* failure = NULL;                                                  \
    mnk_encoder* encoder = mnk_encoder_make(device, NULL, NULL);                \
    CHECK(function(encoder, op, &failure));                                     \
    CHECK_NONE(failure);                                                        \
    mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, NULL); \
    CHECK(mnk_completion_wait(completion, NULL));                               \
    mnk_completion_release(completion);                                         \
    mnk_encoder_release(encoder);                                               \
  } while (0)

enum { kQuantizedDim = 64, kQuantizedTokens = 2 };

// The largest difference between an f32 tensor and these numbers.
static float distance(const mnk_tensor* tensor, const float* expected, size_t count) {
  float got[kQuantizedTokens * kQuantizedDim];
  CHECK(mnk_tensor_read(tensor, got, count * sizeof(float), NULL));
  float largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const float difference = got[i] > expected[i] ? got[i] - expected[i] : expected[i] - got[i];
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

// Stores two tokens of one head in 8 bits, reads them back, and attends to them.
static void testQuantizedAttention(mnk_device* device) {
  float numbers[kQuantizedTokens * kQuantizedDim];
  for (int i = 0; i < kQuantizedTokens * kQuantizedDim; ++i) numbers[i] = (float)(i * 7 % 19 - 9) / 8;
  mnk_kv_codec_sizes sizes = {0};
  const mnk_kv_codec codec = {.name = MNK_TURBO, .bits = 8};
  CHECK(mnk_kv_codec_get_sizes(&codec, kQuantizedDim, &sizes, NULL));
  const uint64_t codeShape[] = {1, kCapacity, sizes.code_bytes}, scaleShape[] = {1, kCapacity};
  mnk_tensor* tokens = makeTensor(device, kQuantizedTokens, 1, kQuantizedDim);
  mnk_tensor* back = makeTensor(device, kQuantizedTokens, 1, kQuantizedDim);
  mnk_tensor* codes[] = {mnk_tensor_make(device, MNK_U8, codeShape, 3, NULL),
                         mnk_tensor_make(device, MNK_U8, codeShape, 3, NULL)};
  mnk_tensor* scales[] = {mnk_tensor_make(device, MNK_F16, scaleShape, 2, NULL),
                          mnk_tensor_make(device, MNK_F16, scaleShape, 2, NULL)};
  CHECK(mnk_tensor_write(tokens, numbers, sizeof numbers, NULL));
  const mnk_quantized_kv_view view = {
      .size = sizeof view,
      .keys = {.codec = codec, .codes = codes[0], .scales = scales[0]},
      .values = {.codec = codec, .codes = codes[1], .scales = scales[1]},
      .wrap = MNK_RING,
  };
  const mnk_kv_cache_quantize store = {
      .size = sizeof store, .keys = tokens, .values = tokens, .source_layout = MNK_TOKEN_MAJOR, .into = view};
  RUN(device, mnk_encoder_kv_cache_quantize, &store);
  const mnk_kv_cache_dequantize load = {
      .size = sizeof load, .from = view, .values = back, .layout = MNK_TOKEN_MAJOR, .domain = MNK_ORIGINAL_DOMAIN};
  RUN(device, mnk_encoder_kv_cache_dequantize, &load);
  CHECK(distance(back, numbers, kQuantizedTokens * kQuantizedDim) < 0.05f);
  mnk_hadamard turn = {.size = sizeof turn, .from = back, .has_signs = true, .signs = MNK_TURBO};
  RUN(device, mnk_encoder_hadamard, &turn);
  CHECK(distance(back, numbers, kQuantizedTokens * kQuantizedDim) > 0.5f);
  turn.is_inverse = true;
  RUN(device, mnk_encoder_hadamard, &turn);
  CHECK(distance(back, numbers, kQuantizedTokens * kQuantizedDim) < 0.05f);

  // Each row sees only its own token, so the result is its value.
  mnk_tensor* out = makeTensor(device, kQuantizedTokens, 1, kQuantizedDim);
  mnk_tensor* stats = makeTensor(device, kQuantizedTokens, 1, 2);
  const mnk_attended_sequence sequence = {.sequence = 0, .length = kQuantizedTokens};
  const mnk_attention_options options = {.size = sizeof options, .window = 1};
  mnk_attention_results results = {.size = sizeof results, .into = out};
  mnk_flash_decode attend = {
      .size = sizeof attend,
      .queries = tokens,
      .quantized = &view,
      .sequences = &sequence,
      .sequence_count = 1,
      .results = &results,
      .options = &options,
  };
  RUN(device, mnk_encoder_flash_decode, &attend);
  CHECK(distance(out, numbers, kQuantizedTokens * kQuantizedDim) < 0.05f);

  // The same as a single partial result.
  results = (mnk_attention_results){.size = sizeof results, .partial_sums = back, .partial_stats = stats};
  RUN(device, mnk_encoder_flash_decode, &attend);
  const uint64_t sumsShape[] = {1, kQuantizedTokens, 1, kQuantizedDim}, statsShape[] = {1, kQuantizedTokens, 1, 2};
  mnk_tensor* partSums = mnk_tensor_make_reshaped(back, sumsShape, 4, NULL);
  mnk_tensor* partStats = mnk_tensor_make_reshaped(stats, statsShape, 4, NULL);
  results = (mnk_attention_results){.size = sizeof results, .into = out};
  const mnk_merge_partials merge = {
      .size = sizeof merge, .partial_sums = partSums, .partial_stats = partStats, .results = &results};
  RUN(device, mnk_encoder_merge_partials, &merge);
  CHECK(distance(out, numbers, kQuantizedTokens * kQuantizedDim) < 0.05f);

  mnk_error* error = NULL;
  const mnk_attention_options byMatrices = {.size = sizeof byMatrices, .kernel = MNK_KERNEL_MATRIX};
  attend.options = &byMatrices;
  if (strcmp(mnk_device_kind(device), "host") == 0) {
    CHECK(mnk_flash_decode_make_plan(&attend, device, &error) == NULL);
    CHECK_PARTS(error, MNK_UNSUPPORTED, "cannot run the matrix kernel");
  }
  attend.options = &options;
  attend.sequence_count = 0;
  CHECK(mnk_flash_decode_make_plan(&attend, device, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "FlashDecode");
  mnk_tensor* tensors[] = {tokens, back, codes[0], codes[1], scales[0], scales[1], out, stats, partSums, partStats};
  for (size_t i = 0; i < sizeof tensors / sizeof *tensors; ++i) mnk_tensor_release(tensors[i]);
}

static void testMistakes(const Fixture* f) {
  mnk_error* error = NULL;
  mnk_kv_cache_write write = ringWrite(f);
  write.into.wrap = MNK_LINEAR;  // position 6 of 4
  CHECK(mnk_kv_cache_write_make_plan(&write, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "KVCacheWrite");

  error = NULL;
  write = ringWrite(f);
  write.size -= 1;
  CHECK(mnk_kv_cache_write_make_plan(&write, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "mnk_kv_cache_write");

  error = NULL;
  write = ringWrite(f);
  write.into.size = 0;
  CHECK(mnk_kv_cache_write_make_plan(&write, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "mnk_kv_cache_view");

  error = NULL;
  float few[1];
  CHECK(!mnk_tensor_read(f->keys, few, sizeof few, &error));
  CHECK(error != NULL);
  mnk_error_release(error);
  CHECK(!mnk_tensor_read(f->keys, few, sizeof few, NULL));  // an error that the caller ignores

  error = NULL;
  CHECK(mnk_device_make_at(mnk_device_count(), &error) == NULL);
  CHECK(error != NULL);
  mnk_error_release(error);
}

static void testReleasingNothing(void) {
  mnk_error_release(NULL);
  mnk_device_release(NULL);
  mnk_tensor_release(NULL);
  mnk_library_release(NULL);
  mnk_plan_release(NULL);
  mnk_encoder_release(NULL);
  mnk_completion_release(NULL);
  mnk_text_release(NULL);
  mnk_cache_release(NULL);
}

int main(void) {
  mnk_error* error = NULL;
  Fixture f = {.device = mnk_device_make_default(&error)};
  if (!f.device && mnk_error_get_code(error) == MNK_UNSUPPORTED) {
    printf("skipped: %s\n", mnk_error_message(error));
    mnk_error_release(error);
    return 0;
  }
  CHECK_NONE(error);
  if (!f.device) return 1;
  f.keys = makeTensor(f.device, kTokens, kHeads, kHeadDim);
  f.values = makeTensor(f.device, kTokens, kHeads, kHeadDim);
  f.cachedKeys = makeTensor(f.device, kHeads, kCapacity, kHeadDim);
  f.cachedValues = makeTensor(f.device, kHeads, kCapacity, kHeadDim);
  if (!f.keys || !f.values || !f.cachedKeys || !f.cachedValues) return 1;

  testRingWrite(&f);
  testRotation(&f);
  testQuantizedAttention(f.device);
  testMistakes(&f);
  testReleasingNothing();

  mnk_device_release(f.device);
  mnk_tensor_release(f.keys);
  mnk_tensor_release(f.values);
  mnk_tensor_release(f.cachedKeys);
  mnk_tensor_release(f.cachedValues);
  return faults == 0 ? 0 : 1;
}
