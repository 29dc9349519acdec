#import <objc/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#import "Running.h"

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

}  // namespace

int XCTLinuxRunTests(NSString *filter) {
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
