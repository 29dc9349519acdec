// Uses the C API from C, to test its header and linking: writes, quantizes and attends, and checks the parts of an
// error. The CApi suites of Tests/Core test the rest. Prints each failed check with its line, and then exits with
// status 1.
#include <MLXNativeKernels/mnk.h>
#include <stdio.h>
#include <string.h>

enum { kDim = 64, kTokens = 2, kCapacity = 4, kCount = kTokens * kDim };

static int faults = 0;

static void check(bool holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "main.c:%d: not true: %s\n", line, text);
  faults += 1;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

// Checks all parts of the error of a call that must fail, and releases it. The message must contain `name`.
static void checkParts(mnk_error* error, mnk_error_code code, const char* name, int line) {
  check(error != NULL, "an error is stored", line);
  if (!error) return;
  check(mnk_error_get_code(error) == code, "the error has the expected code", line);
  check(strstr(mnk_error_message(error), name) != NULL, "the message has the expected name", line);
  check(mnk_error_op(error)[0] && mnk_error_what(error)[0] && mnk_error_got(error)[0], "who, what and got", line);
  check(mnk_error_expected(error)[0] && mnk_error_fix(error)[0], "what was expected and how to fix it", line);
  check(strstr(mnk_error_message(error), mnk_error_what(error)) != NULL, "the message holds the parts", line);
  check(!mnk_error_is_retryable(error), "a broken rule is not retryable", line);
  mnk_error_release(error);
}
#define CHECK_PARTS(error, code, name) checkParts(error, code, name, __LINE__)

static mnk_tensor* make(mnk_device* device, mnk_dtype dtype, uint64_t outer, uint64_t middle, uint64_t inner) {
  const uint64_t shape[] = {outer, middle, inner};
  mnk_tensor* tensor = mnk_tensor_make(device, dtype, shape, inner == 0 ? 2 : 3, NULL);
  CHECK(tensor != NULL);
  return tensor;
}

// Records one op and waits for it.
#define RUN(device, function, op)                                               \
  do {                                                                          \
    mnk_error* failure = NULL;                                                  \
    mnk_encoder* encoder = mnk_encoder_make(device, "c", NULL);                 \
    CHECK(function(encoder, op, &failure));                                     \
    if (failure) fprintf(stderr, "%s\n", mnk_error_message(failure));           \
    mnk_error_release(failure);                                                 \
    mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, NULL); \
    mnk_encoder_release(encoder); /* objects retain what they need */           \
    CHECK(mnk_completion_wait(completion, NULL));                               \
    CHECK(mnk_completion_summary(completion).total.dispatches > 0);             \
    mnk_completion_release(completion);                                         \
  } while (0)

// Whether an f32 tensor holds these numbers, up to the error of 8 bits.
static bool isClose(const mnk_tensor* tensor, const float* expected) {
  float got[kCount];
  CHECK(mnk_tensor_read(tensor, got, sizeof got, NULL));
  for (int i = 0; i < kCount; ++i) {
    const float difference = got[i] - expected[i];
    if (!(difference < 0.05f && difference > -0.05f)) return false;
  }
  return true;
}

static void testOps(mnk_device* device) {
  float numbers[kCount];
  for (int i = 0; i < kCount; ++i) numbers[i] = (float)(i * 7 % 19 - 9) / 8;
  mnk_kv_codec_sizes sizes = {0};
  const mnk_kv_codec codec = {.name = MNK_KV_CODEC_NAME_TURBO, .bits = 8};
  CHECK(mnk_kv_codec_get_sizes(&codec, kDim, &sizes, NULL));
  mnk_tensor *tokens = make(device, MNK_F32, kTokens, 1, kDim), *out = make(device, MNK_F32, kTokens, 1, kDim);
  mnk_tensor* dense = make(device, MNK_F32, 1, kTokens, kDim);
  mnk_tensor *keyCodes = make(device, MNK_U8, 1, kCapacity, sizes.code_bytes),
             *valueCodes = make(device, MNK_U8, 1, kCapacity, sizes.code_bytes);
  mnk_tensor *keyScales = make(device, MNK_F16, 1, kCapacity, 0), *valueScales = make(device, MNK_F16, 1, kCapacity, 0);
  CHECK(mnk_tensor_write(tokens, numbers, sizeof numbers, NULL));

  // With one head, a cache has the layout of its tokens.
  const mnk_kv_cache_write write = {
      .keys = {.tensor = tokens}, .into = {.keys = dense, .wrap = MNK_KV_WRAP_RING}, .position = kTokens};
  RUN(device, mnk_encoder_kv_cache_write, &write);
  CHECK(isClose(dense, numbers));
  const mnk_quantized_kv_cache_view view = {
      .keys = {.codec = codec, .codes = keyCodes, .scales = keyScales},
      .values = {.codec = codec, .codes = valueCodes, .scales = valueScales},
      .wrap = MNK_KV_WRAP_RING,
  };
  const mnk_kv_cache_quantize store = {.keys = {.tensor = tokens}, .values = {.tensor = tokens}, .into = view};
  RUN(device, mnk_encoder_kv_cache_quantize, &store);

  // Each row attends only to its own token, so the result is that token's value.
  const mnk_attended_sequence sequence = {.sequence = 0, .length = kTokens, .has_position = true, .position = 0};
  mnk_flash_decode attend = {
      .queries = {.tensor = tokens},
      .cache = {.quantized = view},
      .sequences = &sequence,
      .sequence_count = 1,
      .results = {.output = out},
      .options = {.window = 1},
  };
  RUN(device, mnk_encoder_flash_decode, &attend);
  CHECK(isClose(out, numbers));

  mnk_error* error = NULL;
  attend.results = (mnk_attention_results){0};
  CHECK(mnk_flash_decode_make_plan(&attend, device, &error) == NULL);
  CHECK_PARTS(error, MNK_INVALID_ARGUMENT, "FlashDecode");
  attend.results.output = out;
  attend.options = (mnk_attention_options){.kernel = MNK_ATTENTION_OPTIONS_KERNEL_MATRIX};
  if (strcmp(mnk_device_kind(device), "host") == 0) {
    error = NULL;
    CHECK(mnk_flash_decode_make_plan(&attend, device, &error) == NULL);
    CHECK_PARTS(error, MNK_UNSUPPORTED, "cannot run the matrix kernel");
  }
  CHECK(!mnk_tensor_read(tokens, numbers, 1, NULL));  // without a place for the error
  mnk_tensor* made[] = {tokens, out, dense, keyCodes, valueCodes, keyScales, valueScales};
  for (size_t i = 0; i < sizeof made / sizeof *made; ++i) mnk_tensor_release(made[i]);
}

int main(void) {
  mnk_error* error = NULL;
  mnk_device* device = mnk_device_make_default(&error);
  if (!device) {
    const bool isMissing = mnk_error_get_code(error) == MNK_UNSUPPORTED;
    printf("%s: %s\n", isMissing ? "skipped" : "failed", mnk_error_message(error));
    mnk_error_release(error);
    return isMissing ? 0 : 1;
  }
  testOps(device);
  mnk_device_release(device);
  return faults == 0 ? 0 : 1;
}
