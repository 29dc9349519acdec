// Uses the C API from C, to test its header and linking: writes, attends, and checks the parts of an error. The CApi
// suites of Tests/Core test the rest. Prints each failed check with its line, and then exits with status 1.
#include <MLXNativeKernels/mnk.h>
#include <stdio.h>
#include <string.h>

enum { kDim = 64, kTokens = 2, kCount = kTokens * kDim };

static int faults = 0;

static void check(bool holds, const char* text, int line) {
  if (holds) return;
  fprintf(stderr, "main.c:%d: not true: %s\n", line, text);
  faults += 1;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__, __LINE__)

// Whether an f32 tensor holds these numbers.
static bool holds(const mnk_tensor* tensor, const float* expected) {
  float got[kCount];
  CHECK(mnk_tensor_read(tensor, got, sizeof got, NULL));
  for (int i = 0; i < kCount; ++i) {
    if (!(got[i] - expected[i] < 1e-6f && expected[i] - got[i] < 1e-6f)) return false;
  }
  return true;
}

static void testOps(mnk_device* device) {
  // With one head, a cache has the layout of its tokens.
  const uint64_t tokenShape[] = {kTokens, 1, kDim}, cacheShape[] = {1, kTokens, kDim};
  mnk_tensor* tokens = mnk_tensor_make(device, MNK_F32, tokenShape, 3, NULL);
  mnk_tensor* out = mnk_tensor_make(device, MNK_F32, tokenShape, 3, NULL);
  mnk_tensor* cache = mnk_tensor_make(device, MNK_F32, cacheShape, 3, NULL);
  float numbers[kCount];
  for (int i = 0; i < kCount; ++i) numbers[i] = (float)(i * 7 % 19 - 9) / 8;
  CHECK(mnk_tensor_write(tokens, numbers, sizeof numbers, NULL));

  mnk_error* error = NULL;
  mnk_encoder* encoder = mnk_encoder_make(device, "c", &error);
  const mnk_kv_cache_view view = {.keys = cache, .values = cache, .wrap = MNK_KV_WRAP_RING};
  const mnk_kv_cache_write write = {.keys = {.tensor = tokens}, .into = {.keys = cache}};
  CHECK(mnk_encoder_kv_cache_write(encoder, &write, &error));
  // Each row attends only to its own token, so the result is that token's value.
  const mnk_attended_sequence sequence = {.sequence = 0, .length = kTokens, .has_position = true, .position = 0};
  mnk_flash_decode attend = {
      .queries = {.tensor = tokens},
      .cache = {.dense = view},
      .sequences = &sequence,
      .sequence_count = 1,
      .results = {.output = out},
      .options = {.window = 1},
  };
  CHECK(mnk_encoder_flash_decode(encoder, &attend, &error));
  if (error) fprintf(stderr, "%s\n", mnk_error_message(error));
  mnk_error_release(error);
  mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, NULL);
  mnk_encoder_release(encoder);  // objects retain what they need
  CHECK(mnk_completion_wait(completion, NULL));
  CHECK(mnk_completion_summary(completion).total.dispatches >= 2);
  mnk_completion_release(completion);
  CHECK(holds(cache, numbers));
  CHECK(holds(out, numbers));

  error = NULL;
  attend.results = (mnk_attention_results){0};
  CHECK(mnk_flash_decode_make_plan(&attend, device, &error) == NULL);
  CHECK(error && mnk_error_get_code(error) == MNK_INVALID_ARGUMENT && !mnk_error_is_retryable(error));
  CHECK(strstr(mnk_error_message(error), "FlashDecode") && strstr(mnk_error_message(error), mnk_error_what(error)));
  CHECK(mnk_error_op(error)[0] && mnk_error_what(error)[0] && mnk_error_got(error)[0]);
  CHECK(mnk_error_expected(error)[0] && mnk_error_fix(error)[0]);
  mnk_error_release(error);
  CHECK(!mnk_tensor_read(tokens, numbers, 1, NULL));  // without a place for the error
  mnk_tensor* made[] = {tokens, out, cache};
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
