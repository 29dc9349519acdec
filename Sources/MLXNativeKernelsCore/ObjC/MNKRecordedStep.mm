#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@interface MNKRecordedStep () {
 @public
  std::unique_ptr<mnk_recorded_step> _handle;
}
- (instancetype)initWithDevice:(MNKDevice *)device handle:(mnk_recorded_step *)handle;
@end

@implementation MNKRecordedStep

- (instancetype)init {
  return nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device handle:(mnk_recorded_step *)handle {
  if ((self = [super init])) {
    _device = device;
    _handle.reset(handle);
  }
  return self;
}

- (MNKCompletion *)runWithError:(NSError **)error {
  return objc::make<MNKCompletion>(error, "MNKRecordedStep", [&](Reading &reading) {
    return objc::call(reading, mnk_recorded_step_run, self->_handle.get(), nullptr, nullptr);
  });
}

- (void)runWithCompletionHandler:(void (^)(MNKSummary *, NSError *))completionHandler {
  void (^handler)(MNKSummary *, NSError *) = [completionHandler copy];
  const Result<Completion> submitted =
      guarded("MNKRecordedStep", [&] { return self->_handle->step.run(objc::finishedBy(handler)); });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

- (MNKSummary *)summary {
  return [[MNKSummary alloc] initWithCore:_handle->step.summary()];
}

@end

@implementation MNKDevice (MNKRecordedStep)

- (MNKRecordedStep *)recordStepWithLabel:(NSString *)label
                                   error:(NSError **)error
                                   block:(BOOL(NS_NOESCAPE ^)(MNKCommandEncoder *, NSError **))block {
  MNKCommandEncoder *encoder = objc::make(error, [&]() -> Result<MNKCommandEncoder *> {
    Reading reading("MNKDevice");
    if (!reading.needed(block, "the block")) return reading.error();
    MNKCommandEncoder *result = [self commandEncoderWithLabel:label];
    StepRecording::begin(result->_handle->encoder);
    return result;
  });
  if (!encoder) return nil;
  NSError *failure = nil;
  if (!block(encoder, &failure)) {
    encoder->_handle->encoder.discard();  // the object may live on in an autorelease pool
    if (failure && error) *error = failure;
    if (!failure) objc::store(error, objc::failedWithoutError());
    return nil;
  }
  return objc::make(error, [&]() -> Result<MNKRecordedStep *> {
    const auto handle = objc::call(Reading("MNKDevice"), mnk_recorded_step_make, encoder->_handle.get());
    if (!handle) encoder->_handle->encoder.discard();
    if (!handle) return handle.error();
    return [[MNKRecordedStep alloc] initWithDevice:self handle:*handle];
  });
}

@end

@implementation MNKCommandEncoder (MNKRecordedStep)

- (BOOL)encodeStep:(MNKRecordedStep *)step error:(NSError **)error {
  return objc::run(error, "MNKCommandEncoder", [&](Reading &reading) {
    const mnk_recorded_step *handle = reading.needed(step, "the step") ? step->_handle.get() : nullptr;
    return objc::call(reading, mnk_encoder_encode_step, self->_handle.get(), handle);
  });
}

- (BOOL)encodePlan:(MNKPlan *)plan error:(NSError **)error {
  return objc::run(error, "MNKCommandEncoder", [&](Reading &reading) {
    const mnk_plan *handle = reading.needed(plan, "the plan") ? plan->_handle.get() : nullptr;
    return objc::call(reading, mnk_encoder_encode_plan, self->_handle.get(), handle);
  });
}

@end

namespace mnk::objc {

CommandEncoder::Finished finishedBy(void (^handler)(MNKSummary *, NSError *)) {
  if (!handler) return {};
  return [handler](const Result<Summary> &outcome) {
    @autoreleasepool {
      if (outcome) {
        handler([[MNKSummary alloc] initWithCore:*outcome], nil);
      } else {
        handler(nil, errorFrom(outcome.error()));
      }
    }
  };
}

Error failedWithoutError() {
  return {.op = "MNKDevice",
          .what = "the block failed without an error",
          .got = "NO, and no error",
          .expected = "YES, or NO and an error",
          .fix = "Pass the block's error to the calls in it, or store one."};
}

}  // namespace mnk::objc
