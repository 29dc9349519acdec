// The part of the C API that all ops share: errors, devices, tensors, the caller's kernels, plans and encoders. Include
// mnk.h, which describes its use.
#ifndef MNK_CORE_H
#define MNK_CORE_H

#include "MLXNativeKernels/Generated/mnk_basics.h"
#include "MLXNativeKernels/mnk_version.h"

MNK_HEADER_BEGIN

typedef struct mnk_error mnk_error;
typedef struct mnk_device mnk_device;
typedef struct mnk_tensor mnk_tensor;
typedef struct mnk_library mnk_library;
typedef struct mnk_encoder mnk_encoder;
typedef struct mnk_completion mnk_completion;
typedef struct mnk_plan mnk_plan;

typedef mnk_error* MNK_NULLABLE* MNK_NULLABLE mnk_error_out;

// Errors

mnk_error_code mnk_error_get_code(const mnk_error* error);
bool mnk_error_is_retryable(const mnk_error* error);
const char* mnk_error_op(const mnk_error* error);
const char* mnk_error_what(const mnk_error* error);
const char* mnk_error_got(const mnk_error* error);
const char* mnk_error_expected(const mnk_error* error);
const char* mnk_error_fix(const mnk_error* error);
const char* mnk_error_message(const mnk_error* error);  // all parts as one string
void mnk_error_release(mnk_error* MNK_NULLABLE error);

// Devices

// The GPU on Apple platforms, the Host device elsewhere, or the one that the environment names (MNK_DEVICE=host or
// metal).
mnk_device* MNK_NULLABLE mnk_device_make_default(mnk_error_out error);
size_t mnk_device_count(void);
mnk_device* MNK_NULLABLE mnk_device_make_at(size_t index, mnk_error_out error);
void mnk_device_release(mnk_device* MNK_NULLABLE device);

const char* mnk_device_kind(const mnk_device* device);  // "host", "metal"
const char* mnk_device_name(const mnk_device* device);
// The newest failure of work submitted on the device, for logs; NULL when there was none. The caller releases it with
// mnk_error_release.
mnk_error* MNK_NULLABLE mnk_device_copy_last_failure(const mnk_device* device);

struct mnk_host_options;
// On Apple platforms the program must link the product MLXNativeKernelsHost and call mnk_register_host_device of
// <MLXNativeKernelsHost/MLXNativeKernelsHost.h> first. Otherwise this fails with MNK_UNSUPPORTED and names the product.
mnk_device* MNK_NULLABLE mnk_device_make_host(const struct mnk_host_options* options, mnk_error_out error);

// Tensors

size_t mnk_dtype_size(mnk_dtype dtype);
const char* mnk_dtype_name(mnk_dtype dtype);

// Zeroed memory. `shape` holds `rank` extents, outermost first, at most eight.
mnk_tensor* MNK_NULLABLE mnk_tensor_make(mnk_device* device, mnk_dtype dtype, const uint64_t* MNK_NULLABLE shape,
                                         size_t rank, mnk_error_out error);
// Caller-owned memory, without a copy. It must stay valid until `release(context)` is called, once, after the
// last user is gone; when the call fails, release is called before it returns.
mnk_tensor* MNK_NULLABLE mnk_tensor_make_wrapping(mnk_device* device, void* memory, uint64_t bytes, mnk_dtype dtype,
                                                  const uint64_t* MNK_NULLABLE shape, size_t rank, uint64_t byte_offset,
                                                  void (*MNK_NULLABLE release)(void* MNK_NULLABLE context),
                                                  void* MNK_NULLABLE context, mnk_error_out error);
// Entries [begin, begin + count) of the outermost axis; shares memory.
mnk_tensor* MNK_NULLABLE mnk_tensor_make_slice(const mnk_tensor* tensor, uint64_t begin, uint64_t count,
                                               mnk_error_out error);
mnk_tensor* MNK_NULLABLE mnk_tensor_make_reshaped(const mnk_tensor* tensor, const uint64_t* MNK_NULLABLE shape,
                                                  size_t rank, mnk_error_out error);
void mnk_tensor_release(mnk_tensor* MNK_NULLABLE tensor);

mnk_dtype mnk_tensor_dtype(const mnk_tensor* tensor);
size_t mnk_tensor_rank(const mnk_tensor* tensor);
uint64_t mnk_tensor_extent(const mnk_tensor* tensor, size_t axis);  // 0 beyond the rank
uint64_t mnk_tensor_byte_count(const mnk_tensor* tensor);
uint64_t mnk_tensor_byte_offset(const mnk_tensor* tensor);

// Whole-tensor copies; `bytes` must equal the tensor's byte count. They wait for work that was committed before the
// call and touches these bytes: a read for work that writes them, a write for work that reads or writes them. A read
// fails if the work that was to write the bytes failed, until they are written again. If waiting could never end, in a
// handler of finished work or for a command buffer that the app has not committed, they fail with MNK_WOULD_DEADLOCK.
bool mnk_tensor_read(const mnk_tensor* tensor, void* MNK_NULLABLE into, uint64_t bytes, mnk_error_out error);
bool mnk_tensor_write(mnk_tensor* tensor, const void* MNK_NULLABLE from, uint64_t bytes, mnk_error_out error);

// The caller's kernels

// Metal Shading Language with five macros for what only a Metal compiler parses; they need no include:
//   export_kernel(f)  instantiate_kernel("name", f, type…)  pipeline_constant(type, name, index)
//   threadgroup_array(type, name, count)  [[threadgroup_memory(n)]]
// A device compiles a source or a file once and keeps it until mnk_device_clear_kernels.
mnk_library* MNK_NULLABLE mnk_library_make_from_text(mnk_device* device, const char* text, const char* label,
                                                     mnk_error_out error);
mnk_library* MNK_NULLABLE mnk_library_make_from_path(mnk_device* device, const char* path, mnk_error_out error);
// The library that this package ships.
mnk_library* MNK_NULLABLE mnk_library_make_shipped(mnk_device* device, mnk_error_out error);
void mnk_library_release(mnk_library* MNK_NULLABLE library);
// Releases all pipelines and libraries, so that a changed file is read again. Those in use stay valid.
void mnk_device_clear_kernels(mnk_device* device);
size_t mnk_library_function_count(const mnk_library* library);
const char* mnk_library_function_name(const mnk_library* library, size_t index);  // "" beyond the count

mnk_library_origin mnk_library_get_origin(const mnk_library* library);
// "" if it was not a file. Of embedded text: the compiled file that it replaces, because that has fast math.
const char* mnk_library_origin_path(const mnk_library* library);

typedef enum MNK_CLOSED(mnk_constant_type) {
  MNK_CONSTANT_BOOL = 0,
  MNK_CONSTANT_I32,
  MNK_CONSTANT_U32,
  MNK_CONSTANT_F32
} mnk_constant_type;

typedef struct mnk_binding {  // a tensor at a buffer index; all of its bytes count as accessed
  uint32_t index;
  mnk_tensor* tensor;
  mnk_access access;
} mnk_binding;
typedef struct mnk_inline_bytes {
  uint32_t index;
  const void* bytes;
  size_t count;
  bool is_value;  // whether they are one value of the parameter's type, which then has exactly their size
} mnk_inline_bytes;
typedef struct mnk_threadgroup_memory {
  uint32_t index;
  uint32_t bytes;
} mnk_threadgroup_memory;
typedef struct mnk_constant {
  uint32_t index;
  mnk_constant_type type;
  uint32_t bits;  // the value's own bits; a bool is 0 or 1
} mnk_constant;

typedef struct mnk_dispatch {
  const mnk_library* MNK_NULLABLE library;  // NULL: the library that this package ships
  const char* function;
  const char* MNK_NULLABLE kind;  // counters are kept per kind; NULL: "Custom"
  const mnk_binding* MNK_NULLABLE buffers;
  size_t buffer_count;
  const mnk_inline_bytes* MNK_NULLABLE inlines;
  size_t inline_count;
  const mnk_threadgroup_memory* MNK_NULLABLE threadgroup_memory;
  size_t threadgroup_memory_count;
  const mnk_constant* MNK_NULLABLE constants;
  size_t constant_count;
  uint32_t grid[3];         // threads, or threadgroups when grid_is_threadgroups; 1 for unused axes
  uint32_t threadgroup[3];  // threads of one; all 0 lets the encoder choose, only with a grid of threads
  bool grid_is_threadgroups;
} mnk_dispatch;

// Plans

void mnk_plan_release(mnk_plan* MNK_NULLABLE plan);
const char* mnk_plan_text(const mnk_plan* plan);
size_t mnk_plan_dispatch_count(const mnk_plan* plan);
uint64_t mnk_plan_scratch_bytes(const mnk_plan* plan);

typedef struct mnk_planned_dispatch {
  const char* function;
  uint32_t grid[3];
  uint64_t bytes_read;
  uint64_t bytes_written;
} mnk_planned_dispatch;
// All zero beyond the count.
mnk_planned_dispatch mnk_plan_dispatch(const mnk_plan* plan, size_t index);

// Encoding

mnk_encoder* MNK_NULLABLE mnk_encoder_make(mnk_device* device, const char* MNK_NULLABLE label, mnk_error_out error);
// An encoder released before it is committed runs nothing.
void mnk_encoder_release(mnk_encoder* MNK_NULLABLE encoder);
bool mnk_encoder_dispatch(mnk_encoder* encoder, const mnk_dispatch* dispatch, mnk_error_out error);
bool mnk_encoder_barrier(mnk_encoder* encoder, mnk_error_out error);
// Measures how long each kind of op takes on the device, for mnk_counts. At any time before the commit. Measured ops
// run one after another, which costs some microseconds each on a GPU.
bool mnk_encoder_measure_ops(mnk_encoder* encoder, mnk_error_out error);

// `failure` is NULL when the work succeeded, and borrowed for the call.
typedef void (*mnk_finished)(void* MNK_NULLABLE context, const mnk_error* MNK_NULLABLE failure);
// Submits. `finished`, if any, is called once, on a thread of the device, if and only if commit succeeded; by then the
// completion is done and its summary final. It can read the results of this work. Work that reads what earlier, failed
// work was to write fails too.
mnk_completion* MNK_NULLABLE mnk_encoder_commit(mnk_encoder* encoder, mnk_finished MNK_NULLABLE finished,
                                                void* MNK_NULLABLE context, mnk_error_out error);

void mnk_completion_release(mnk_completion* MNK_NULLABLE completion);
// Inside of a `finished` call, waiting for work that is not done fails with MNK_WOULD_DEADLOCK.
bool mnk_completion_wait(const mnk_completion* completion, mnk_error_out error);
bool mnk_completion_is_done(const mnk_completion* completion);

typedef struct mnk_counts {
  uint64_t dispatches;
  uint64_t bytes_read;
  uint64_t bytes_written;
  // Time on the device; in the total that of all kinds. 0 unless ops were measured, the device can, and the work has
  // finished.
  double device_seconds;
} mnk_counts;
typedef struct mnk_summary {
  mnk_counts total;
  uint64_t barriers;
  double device_seconds;  // of the whole work, measured or not; 0 until it has finished
} mnk_summary;
mnk_summary mnk_completion_summary(const mnk_completion* completion);
mnk_counts mnk_completion_counts(const mnk_completion* completion, const char* kind);  // zeros for an unknown kind
// The kinds in alphabetical order, NULL beyond the last. The caller releases each with mnk_text_release.
char* MNK_NULLABLE mnk_completion_copy_kind(const mnk_completion* completion, size_t index);
// One line, such as "4 dispatches, 3 barriers, 1.1 MB read, 8.0 KB written, 41 µs". The caller releases it with
// mnk_text_release.
char* MNK_NULLABLE mnk_completion_copy_text(const mnk_completion* completion);
void mnk_text_release(char* MNK_NULLABLE text);

MNK_HEADER_END

#endif
