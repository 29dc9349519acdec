#import "ObjC/Core.hpp"

using namespace mnk;
using objc::Reading;

@interface MNKRecordedStep () {
 @public
  std::optional<RecordedStep> _core;
}
- (instancetype)initWithDevice:(MNKDevice *)device core:(RecordedStep)core;
@end

@implementation MNKRecordedStep

- (instancetype)init {
  return nil;
}

- (instancetype)initWithDevice:(MNKDevice *)device core:(RecordedStep)core {
  if ((self = [super init])) {
    _device = device;
    _core = std::move(core);
  }
  return self;
}

- (MNKCompletion *)runWithError:(NSError **)error {
  return objc::make(error, [&]() -> Result<MNKCompletion *> {
    auto completion = self->_core->run();
    if (!completion) return completion.error();
    return [[MNKCompletion alloc] initWithCore:*completion];
  });
}

- (void)runWithCompletionHandler:(void (^)(MNKSummary *, NSError *))completionHandler {
  void (^handler)(MNKSummary *, NSError *) = [completionHandler copy];
  const Result<Completion> submitted =
      guarded("MNKRecordedStep", [&] { return self->_core->run(objc::finishedBy(handler)); });
  if (!submitted && handler) handler(nil, objc::errorFrom(submitted.error()));
}

- (MNKSummary *)summary {
  return [[MNKSummary alloc] initWithCore:_core->summary()];
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
    auto step = StepRecording::end(encoder->_handle->encoder);
    if (!step) encoder->_handle->encoder.discard();
    if (!step) return step.error();
    return [[MNKRecordedStep alloc] initWithDevice:self core:std::move(*step)];
  });
}

@end

@implementation MNKCommandEncoder (MNKRecordedStep)

- (BOOL)encodeStep:(MNKRecordedStep *)step error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(step, "the step")) return reading.error();
    return step->_core->encode(self->_handle->encoder);
  });
}

- (BOOL)encodePlan:(MNKPlan *)plan error:(NSError **)error {
  return objc::run(error, [&]() -> Result<void> {
    Reading reading("MNKCommandEncoder");
    if (!reading.needed(plan, "the plan")) return reading.error();
    return self->_handle->encoder.encode(plan->_core);
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
