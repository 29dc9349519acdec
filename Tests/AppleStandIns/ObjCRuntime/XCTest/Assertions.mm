#import "Catch.h"
#import "Running.h"

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

void _XCTSkip(XCTestCase *test, NSString *note) {
  [test skipWithNote:note];
}

NSException *_XCTCatch(void(NS_NOESCAPE ^ block)(void)) {
  return XCTLinuxCatch([](void *context) { ((__bridge void (^)(void))context)(); }, (__bridge void *)block);
}
