// Generated from Sources/API by generate.py: change the description instead.
#include "CAPI/Generated/Read.hpp"
#include "CAPI/Generated/Write.hpp"
#import "ObjC/Generated/Read.hpp"

using namespace mnk;

@implementation MNKHostOptions

+ (NSArray<NSString *> *)valueKeys {
  return @[ @"workers", @"orderSeed", @"checking", @"allowsSameValue", @"perturbsResults", @"level", @"compiler" ];
}

- (instancetype)init {
  if ((self = [super init])) {
    _checking = MNKHostOptionsCheckingOff;
    _level = MNKHostOptionsLevelBest;
  }
  return self;
}

@end

namespace mnk::objc {

mnk_host_options_level enumFrom(Reading &reading, MNKHostOptionsLevel value, std::string_view name) {
  return reading.choice<mnk_host_options_level>(value,
                                                {MNK_HOST_OPTIONS_LEVEL_BEST, MNK_HOST_OPTIONS_LEVEL_BASELINE,
                                                 MNK_HOST_OPTIONS_LEVEL_AVX2, MNK_HOST_OPTIONS_LEVEL_AVX512},
                                                name, "MNKHostOptionsLevel");
}

mnk_host_options_checking enumFrom(Reading &reading, MNKHostOptionsChecking value, std::string_view name) {
  return reading.choice<mnk_host_options_checking>(
      value, {MNK_HOST_OPTIONS_CHECKING_OFF, MNK_HOST_OPTIONS_CHECKING_GUARDED, MNK_HOST_OPTIONS_CHECKING_FULL}, name,
      "MNKHostOptionsChecking");
}

mnk_host_options structFrom(Reading &reading, MNKHostOptions *object, std::string_view name) {
  mnk_host_options into{};
  if (!object || !reading.isA([MNKHostOptions class], object, name)) return into;
  into.workers = reading.narrow(object.workers, "workers");
  into.order_seed = object.orderSeed;
  into.checking = enumFrom(reading, object.checking, "checking");
  into.allows_same_value = object.allowsSameValue != NO;
  into.perturbs_results = object.perturbsResults != NO;
  into.level = enumFrom(reading, object.level, "level");
  into.compiler = object.compiler ? reading.keep(textFrom(object.compiler)) : nullptr;
  return into;
}

MNKHostOptions *objectFrom(const HostOptions &core) {
  MNKHostOptions *object = [[MNKHostOptions alloc] init];
  object.workers = core.workers;
  object.orderSeed = core.orderSeed;
  object.checking = static_cast<MNKHostOptionsChecking>(c::write(core.checking));
  object.allowsSameValue = core.allowsSameValue;
  object.perturbsResults = core.perturbsResults;
  object.level = static_cast<MNKHostOptionsLevel>(c::write(core.level));
  object.compiler = core.compiler.empty() ? nil : stringFrom(core.compiler);
  return object;
}

}  // namespace mnk::objc
