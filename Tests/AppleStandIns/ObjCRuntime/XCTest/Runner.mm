#import <objc/runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#import "Running.h"

namespace {

struct Totals {
  NSUInteger tests = 0, skipped = 0, failures = 0;
  NSTimeInterval seconds = 0;

  void add(const Totals &other) {
    tests += other.tests;
    skipped += other.skipped;
    failures += other.failures;
    seconds += other.seconds;
  }
};

const char *plural(NSUInteger count) {
  return count == 1 ? "" : "s";
}

void print(const Totals &totals) {
  std::printf("\t Executed %lu test%s, with ", (unsigned long)totals.tests, plural(totals.tests));
  if (totals.skipped > 0) {
    std::printf("%lu test%s skipped and ", (unsigned long)totals.skipped, plural(totals.skipped));
  }
  std::printf("%lu failure%s in %.3f seconds\n", (unsigned long)totals.failures, plural(totals.failures),
              totals.seconds);
  std::fflush(stdout);
}

void printSuite(const char *name, const char *verdict) {
  NSString *const time = [NSDate date].description;
  std::printf("Test Suite '%s' %s at %s.\n", name, verdict, time.UTF8String);
}

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

// The tests of a class, including inherited ones.
std::vector<SEL> testsOf(Class inspected, NSString *filter) {
  std::vector<SEL> tests;
  for (Class each = inspected; each != [XCTestCase class]; each = class_getSuperclass(each)) {
    unsigned count = 0;
    Method *const methods = class_copyMethodList(each, &count);
    for (unsigned i = 0; i < count; ++i) {
      const SEL selector = method_getName(methods[i]);
      NSString *const path = [NSString stringWithFormat:@"%s/%s", class_getName(inspected), sel_getName(selector)];
      const bool isTest = std::strncmp(sel_getName(selector), "test", 4) == 0 &&
                          method_getNumberOfArguments(methods[i]) == 2;  // self and _cmd
      if (isTest && (filter.length == 0 || [path rangeOfString:filter].length > 0)) tests.push_back(selector);
    }
    std::free(methods);
  }
  std::sort(tests.begin(), tests.end(),
            [](SEL left, SEL right) { return std::strcmp(sel_getName(left), sel_getName(right)) < 0; });
  tests.erase(std::unique(tests.begin(), tests.end(), [](SEL left, SEL right) { return sel_isEqual(left, right); }),
              tests.end());
  return tests;
}

Totals run(Class testClass, SEL selector) {
  @autoreleasepool {
    XCTestCase *const test = [[testClass alloc] initWithTest:selector];
    NSString *const name = test.name;
    std::printf("Test Case '%s' started.\n", name.UTF8String);
    std::fflush(stdout);  // so that a crash does not hide the test's name
    NSDate *const begin = [NSDate date];
    @autoreleasepool {
      [test runTest];
    }
    const NSTimeInterval seconds = -begin.timeIntervalSinceNow;
    const char *const verdict = test.failureCount > 0 ? "failed" : test.isSkipped ? "skipped" : "passed";
    std::printf("Test Case '%s' %s (%.3f seconds).\n", name.UTF8String, verdict, seconds);
    std::fflush(stdout);
    return {.tests = 1,
            .skipped = test.isSkipped ? NSUInteger(1) : NSUInteger(0),
            .failures = test.failureCount,
            .seconds = seconds};
  }
}

Totals runSuite(Class testClass, const std::vector<SEL> &tests) {
  printSuite(class_getName(testClass), "started");
  Totals totals;
  @autoreleasepool {
    [testClass setUp];
    for (const SEL test : tests) totals.add(run(testClass, test));
    [testClass tearDown];
  }
  printSuite(class_getName(testClass), totals.failures > 0 ? "failed" : "passed");
  print(totals);
  return totals;
}

}  // namespace

int XCTLinuxRunTests(NSString *filter) {
  const char *const all = filter.length > 0 ? "Selected tests" : "All tests";
  printSuite(all, "started");
  Totals totals;
  for (const Class testClass : testClasses()) {
    const std::vector<SEL> tests = testsOf(testClass, filter);
    if (!tests.empty()) totals.add(runSuite(testClass, tests));
  }
  printSuite(all, totals.failures > 0 ? "failed" : "passed");
  print(totals);
  std::printf("Objective-C++ total: %lu tests\n", (unsigned long)totals.tests);
  if (totals.tests == 0) std::printf("error: no test ran: none matches '%s'\n", filter.UTF8String);
  std::fflush(stdout);
  return totals.failures > 0 || totals.tests == 0 ? 1 : 0;
}
