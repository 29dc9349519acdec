// XCTest's test case and the program objc-tests [FILTER], which runs the tests whose "Class/method" contains the
// filter. It fails if one fails or none ran.
#import <XCTest/XCTest.h>
#import <objc/runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

@interface XCTestCase ()
- (NSUInteger)failureCount;
- (instancetype)initWithTest:(SEL)selector;
- (void)runTest;
- (void)failAt:(const char *)file line:(int)line text:(NSString *)text;
@end

NSString *xct::note(NSString *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  NSString *const text = [[NSString alloc] initWithFormat:format arguments:arguments];
  va_end(arguments);
  return [@" - " stringByAppendingString:text];
}

void _XCTFail(XCTestCase *test, const char *file, int line, NSString *text) {
  [test failAt:file line:line text:text];
}

@implementation XCTestCase {
  SEL _selector;
  std::atomic<NSUInteger> _failureCount;  // any thread may fail
}

- (instancetype)initWithTest:(SEL)selector {
  if ((self = [super init])) _selector = selector;
  return self;
}

- (NSString *)name {
  return [NSString stringWithFormat:@"-[%s %s]", class_getName([self class]), sel_getName(_selector)];
}

- (NSUInteger)failureCount {
  return _failureCount;
}

- (void)failAt:(const char *)file line:(int)line text:(NSString *)text {
  ++_failureCount;
  std::printf("%s:%d: error: %s : %s\n", file, line, self.name.UTF8String, text.UTF8String);
}

// An exception that escapes ends the program.
- (void)runTest {
  [self setUp];
  if (self.failureCount == 0) {
    const IMP method = [self methodForSelector:_selector];
    reinterpret_cast<void (*)(id, SEL)>(reinterpret_cast<void *>(method))(self, _selector);
  }
  [self tearDown];
}

+ (void)setUp {
}

+ (void)tearDown {
}

- (void)setUp {
}

- (void)tearDown {
}

@end

namespace {

// Classes live forever, and some classes of the runtime cannot be retained.
using AnyClass = __unsafe_unretained Class;

bool isTestCase(AnyClass inspected) {
  for (AnyClass each = class_getSuperclass(inspected); each; each = class_getSuperclass(each)) {
    if (each == [XCTestCase class]) return true;
  }
  return false;
}

std::vector<AnyClass> testClasses() {
  std::vector<AnyClass> classes(std::size_t(objc_getClassList(nullptr, 0)));
  objc_getClassList(classes.data(), int(classes.size()));
  std::erase_if(classes, [](AnyClass each) { return !isTestCase(each); });
  std::sort(classes.begin(), classes.end(),
            [](AnyClass left, AnyClass right) { return std::strcmp(class_getName(left), class_getName(right)) < 0; });
  return classes;
}

// The tests that the class itself has.
std::vector<SEL> testsOf(Class inspected, NSString *filter) {
  std::vector<SEL> tests;
  unsigned count = 0;
  Method *const methods = class_copyMethodList(inspected, &count);
  for (unsigned i = 0; i < count; ++i) {
    const SEL selector = method_getName(methods[i]);
    NSString *const path = [NSString stringWithFormat:@"%s/%s", class_getName(inspected), sel_getName(selector)];
    const bool isTest = std::strncmp(sel_getName(selector), "test", 4) == 0 &&
                        method_getNumberOfArguments(methods[i]) == 2;  // self and _cmd
    if (isTest && (filter.length == 0 || [path rangeOfString:filter].length > 0)) tests.push_back(selector);
  }
  std::free(methods);
  std::sort(tests.begin(), tests.end(),
            [](SEL left, SEL right) { return std::strcmp(sel_getName(left), sel_getName(right)) < 0; });
  return tests;
}

// Returns the number of failures.
NSUInteger run(Class testClass, SEL selector) {
  @autoreleasepool {
    XCTestCase *const test = [[testClass alloc] initWithTest:selector];
    NSString *const name = test.name;
    std::printf("Test Case '%s' started.\n", name.UTF8String);
    std::fflush(stdout);  // so that a crash does not hide the test's name
    NSDate *const begin = [NSDate date];
    @autoreleasepool {
      [test runTest];
    }
    std::printf("Test Case '%s' %s (%.3f seconds).\n", name.UTF8String, test.failureCount > 0 ? "failed" : "passed",
                -begin.timeIntervalSinceNow);
    return test.failureCount;
  }
}

// Runs all tests whose "Class/method" contains the filter, in name order; all if it is empty. Returns the exit status.
int runTests(NSString *filter) {
  NSUInteger count = 0, failures = 0;
  NSDate *const begin = [NSDate date];
  for (const Class testClass : testClasses()) {
    const std::vector<SEL> tests = testsOf(testClass, filter);
    if (tests.empty()) continue;
    @autoreleasepool {
      [testClass setUp];
      for (const SEL test : tests) failures += run(testClass, test);
      [testClass tearDown];
    }
    count += tests.size();
  }
  std::printf("Executed %lu test%s, with %lu failure%s in %.3f seconds\n", (unsigned long)count, count == 1 ? "" : "s",
              (unsigned long)failures, failures == 1 ? "" : "s", -begin.timeIntervalSinceNow);
  std::printf("Objective-C++ total: %lu tests\n", (unsigned long)count);
  if (count == 0) std::printf("error: no test ran: none matches '%s'\n", filter.UTF8String);
  std::fflush(stdout);
  return failures > 0 || count == 0 ? 1 : 0;
}

}  // namespace

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
      const int status = runTests(filter);
      __lsan_enable();
      if (status != 0) return status;
    }
    return runTests(filter);
  }
}
