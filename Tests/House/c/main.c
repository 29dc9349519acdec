// The C door from C: a ring is written and read back, keys turn there and back, and mistakes come back as errors in
// four parts. Prints each fault with its line; the exit status is 1 when there was any.
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

// Takes the error of a call that should have succeeded.
static void checkNone(mnk_error* error, int line) {
  if (error) {
    fprintf(stderr, "main.c:%d: %s\n", line, mnk_error_message(error));
    faults += 1;
  }
  mnk_error_release(error);
}
#define CHECK_NONE(error) checkNone(error, __LINE__)

// Takes the error of a call that should have failed, and wants all its parts and the name of who is to blame.
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

// Every element differs, and no element is zero as fresh memory is.
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
  mnk_encoder* encoder = mnk_encoder_make(f->device, "c door", &error);
  CHECK_NONE(error);
  if (!encoder) return;

  error = NULL;
  CHECK(mnk_encoder_kv_cache_write(encoder, &write, &error));
  CHECK_NONE(error);
  error = NULL;
  mnk_completion* completion = mnk_encoder_commit(encoder, NULL, NULL, &error);
  CHECK_NONE(error);
  CHECK(completion != NULL);

  // A committed encoder is used up, which is an error and no crash.
  error = NULL;
  CHECK(!mnk_encoder_kv_cache_write(encoder, &write, &error));
  CHECK(error != NULL);
  mnk_error_release(error);

  // Objects hold what they need, so the encoder may go before its work has finished.
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

// Turns the keys in place and back again.
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
  CHECK(!mnk_tensor_read(f->keys, few, sizeof few, NULL));  // an error nobody asked for

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
  CHECK_NONE(error);
  if (!f.device) return 1;
  f.keys = makeTensor(f.device, kTokens, kHeads, kHeadDim);
  f.values = makeTensor(f.device, kTokens, kHeads, kHeadDim);
  f.cachedKeys = makeTensor(f.device, kHeads, kCapacity, kHeadDim);
  f.cachedValues = makeTensor(f.device, kHeads, kCapacity, kHeadDim);
  if (!f.keys || !f.values || !f.cachedKeys || !f.cachedValues) return 1;

  testRingWrite(&f);
  testRotation(&f);
  testMistakes(&f);
  testReleasingNothing();

  mnk_device_release(f.device);
  mnk_tensor_release(f.keys);
  mnk_tensor_release(f.values);
  mnk_tensor_release(f.cachedKeys);
  mnk_tensor_release(f.cachedValues);
  return faults == 0 ? 0 : 1;
}
