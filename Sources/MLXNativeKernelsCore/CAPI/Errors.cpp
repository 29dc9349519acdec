#include "Support/Errors.hpp"
#include "CAPI/Fields.hpp"

namespace mnk::c {

namespace {

// Returned when there is no memory even for an error. Created in advance and never released.
mnk_error exhausted{outOfMemory("C API", "a failed allocation"), "C API: memory ran out."};

Error unread(std::string_view op, std::string_view field, std::string_view needed, std::string_view unset,
             std::string_view empty) {
  return {.op = std::string(op),
          .what = fmt::format("{} would be ignored", field),
          .got = fmt::format("{} while {} is {}", field, needed, unset),
          .expected = fmt::format("{} to be set, or {} to be {}", needed, field, empty),
          .fix = fmt::format("Set {}, or leave {} at {}.", needed, field, empty)};
}

}  // namespace

void store(mnk_error_out out, Error error) noexcept {
  if (!out) return;
  try {
    auto stored = std::make_unique<mnk_error>();
    stored->message = error.message();
    stored->error = std::move(error);
    *out = stored.release();
  } catch (...) {
    *out = &exhausted;
  }
}

void release(mnk_error* error) noexcept {
  if (error != &exhausted) delete error;
}

Error nullArgument(std::string_view what) {
  return {.op = "C API",
          .what = fmt::format("{} is missing", what),
          .got = "NULL",
          .expected = "a pointer",
          .fix = "Pass an object; where it may be NULL, leave its count and the fields that need it at 0."};
}

Error tooMany(std::string_view op, std::string_view what, uint64_t got, uint64_t most, std::string_view fix) {
  return {.op = std::string(op),
          .what = fmt::format("there are too many {}", what),
          .got = fmt::format("{}", got),
          .expected = fmt::format("at most {}", most),
          .fix = std::string(fix)};
}

Error ignored(std::string_view op, std::string_view field, std::string_view flag, std::string_view unset) {
  return unread(op, field, flag, unset, "0");
}

Error uncounted(std::string_view op, std::string_view list, std::string_view count) {
  return unread(op, list, count, "0", "NULL");
}

Error twice(std::string_view type, const Field& field, std::string_view got) {
  return {.op = std::string(type),
          .what = fmt::format("there are several values for {}", field.text()),
          .got = std::string(got),
          .expected = "one of them",
          .fix = "Set one, and leave the others zero."};
}

Result<void> checkOneOf(std::span<const bool> given, std::string_view names, const Field& field) {
  const auto count = std::count(given.begin(), given.end(), true);
  if (count == 1) return {};
  if (count > 1) return twice("C API", field, fmt::format("several of {}", names));
  return Error{.op = "C API",
               .what = fmt::format("{} is missing", field.text()),
               .got = fmt::format("none of {}", names),
               .expected = "one of them",
               .fix = "Set one of them."};
}

uint64_t mostListed(const HeadsView& queries) {
  const HeadsView::Strides axes = queries.isReadable() ? queries.resolved() : HeadsView::Strides{};
  return axes.sequences == 1 ? std::max<uint64_t>(axes.tokens, 1) : axes.sequences;
}

Error unknownNumber(std::string_view type, uint32_t got, std::string_view expected) {
  return {.op = "C API",
          .what = fmt::format("the number is not a case of {}", type),
          .got = fmt::format("{}", got),
          .expected = std::string(expected),
          .fix = "Use the constants of mnk.h."};
}

Result<Shape> shape(const uint64_t* extents, size_t rank) {
  if (!extents && rank != 0) return nullArgument("shape");
  return Shape::make(std::span<const uint64_t>(extents, rank));
}

}  // namespace mnk::c

mnk_error_code mnk_error_get_code(const mnk_error* error) {
  return error ? static_cast<mnk_error_code>(error->error.code) : MNK_INVALID_ARGUMENT;
}
bool mnk_error_is_retryable(const mnk_error* error) {
  return error ? error->error.retryable : false;
}
const char* mnk_error_op(const mnk_error* error) {
  return error ? error->error.op.c_str() : "";
}
const char* mnk_error_what(const mnk_error* error) {
  return error ? error->error.what.c_str() : "";
}
const char* mnk_error_got(const mnk_error* error) {
  return error ? error->error.got.c_str() : "";
}
const char* mnk_error_expected(const mnk_error* error) {
  return error ? error->error.expected.c_str() : "";
}
const char* mnk_error_fix(const mnk_error* error) {
  return error ? error->error.fix.c_str() : "";
}
const char* mnk_error_message(const mnk_error* error) {
  return error ? error->message.c_str() : "";
}
void mnk_error_release(mnk_error* error) {
  mnk::c::release(error);
}
