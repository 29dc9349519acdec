// objc-tests [FILTER]: runs the tests whose "Class/method" contains the filter. Fails if one fails or none ran.
#import "Running.h"

// Only with LeakSanitizer.
extern "C" __attribute__((weak)) void __lsan_disable(void);
extern "C" __attribute__((weak)) void __lsan_enable(void);

int main(int count, char **arguments) {
  @autoreleasepool {
    NSString *const filter = count > 1 ? [NSString stringWithUTF8String:arguments[1]] : @"";
    if (__lsan_disable) {
      // The first run ignores leaks: it allocates what Foundation, the runtime and the core keep for the life of the
      // process. Real leaks occur again in the second run.
      __lsan_disable();
      const int status = XCTLinuxRunTests(filter);
      __lsan_enable();
      if (status != 0) return status;
    }
    return XCTLinuxRunTests(filter);
  }
}
