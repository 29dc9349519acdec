#import "ObjC/ErrorBridge.hpp"

#import <MLXNativeKernels/MNKError.h>

NSErrorDomain const MNKErrorDomain = @"MNKErrorDomain";
NSErrorUserInfoKey const MNKErrorOpKey = @"MNKErrorOp";
NSErrorUserInfoKey const MNKErrorWhatKey = @"MNKErrorWhat";
NSErrorUserInfoKey const MNKErrorGotKey = @"MNKErrorGot";
NSErrorUserInfoKey const MNKErrorExpectedKey = @"MNKErrorExpected";
NSErrorUserInfoKey const MNKErrorFixKey = @"MNKErrorFix";
NSErrorUserInfoKey const MNKErrorIsRetryableKey = @"MNKErrorIsRetryable";

namespace mnk::objc {

NSString *stringFrom(std::string_view text) {
  NSString *string = [[NSString alloc] initWithBytes:text.data() length:text.size() encoding:NSUTF8StringEncoding];
  // Text from a compiler or a file need not be UTF-8.
  if (!string) {
    string = [[NSString alloc] initWithBytes:text.data() length:text.size() encoding:NSISOLatin1StringEncoding];
  }
  return string ?: @"";
}

std::string textFrom(NSString *string) {
  NSData *bytes = [string dataUsingEncoding:NSUTF8StringEncoding];
  return bytes ? std::string(static_cast<const char *>(bytes.bytes), bytes.length) : std::string();
}

Result<std::string> pathFrom(NSURL *url, std::string_view op) {
  const std::string path = url.isFileURL ? textFrom(url.path) : std::string();
  // The system would end the path at the null character.
  if (!path.empty() && path.find('\0') == std::string::npos) return path;
  return Error{.op = std::string(op),
               .what = "the URL names no file",
               .got = url ? textFrom(url.absoluteString) : "nil",
               .expected = "a file URL",
               .fix = "Make it with +[NSURL fileURLWithPath:]."};
}

NSError *errorFrom(const Error &error) {
  return
      [NSError errorWithDomain:MNKErrorDomain
                          code:static_cast<NSInteger>(error.code)
                      userInfo:@{
                        NSLocalizedDescriptionKey : stringFrom(error.message()),
                        NSLocalizedFailureReasonErrorKey : stringFrom(error.what),
                        NSLocalizedRecoverySuggestionErrorKey : stringFrom(error.fix),
                        NSDebugDescriptionErrorKey : stringFrom("MLXNativeKernels " MNK_VERSION ": " + error.message()),
                        MNKErrorOpKey : stringFrom(error.op),
                        MNKErrorWhatKey : stringFrom(error.what),
                        MNKErrorGotKey : stringFrom(error.got),
                        MNKErrorExpectedKey : stringFrom(error.expected),
                        MNKErrorFixKey : stringFrom(error.fix),
                        MNKErrorIsRetryableKey : @(error.retryable),
                      }];
}

void store(NSError *__autoreleasing *out, const Error &error) {
  if (!out) return;
  try {
    *out = errorFrom(error);
  } catch (...) {  // no memory even for the texts
    *out = [NSError errorWithDomain:MNKErrorDomain code:MNKErrorOutOfMemory userInfo:nil];
  }
}

}  // namespace mnk::objc
