// Faults that the analyzer must report, each at its line. .ci/objc --analyze checks the warnings; this never runs.
#import <Foundation/Foundation.h>

NS_ASSUME_NONNULL_BEGIN

@interface AnalyzedMistakes : NSObject
- (NSString *)nameOf:(nullable NSString *)text;
- (BOOL)fillError:(NSError **)error;
- (int)divide:(int)value;
@end

NS_ASSUME_NONNULL_END

@implementation AnalyzedMistakes

- (NSString *)nameOf:(NSString *)text {
  if (!text) return text;  // mistake
  return text;
}

- (BOOL)fillError:(NSError **)error {
  *error = [NSError errorWithDomain:@"Analyzed" code:1 userInfo:nil];  // mistake
  return NO;
}

- (int)divide:(int)value {
  const int zero = value - value;
  return zero == 0 ? value / zero : 0;  // mistake
}

@end
