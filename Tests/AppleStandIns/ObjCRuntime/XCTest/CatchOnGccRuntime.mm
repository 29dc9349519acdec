#import "Catch.h"

NSException *XCTLinuxCatch(void (*function)(void *), void *context) {
  @try {
    function(context);
  } @catch (NSException *exception) {
    return exception;
  }
  return nil;
}
