#include <string>
#include <vector>

#import "Sample.h"

@implementation SampleNode {
  std::vector<std::string> _names;
}

- (instancetype)initWithTitle:(NSString *)title {
  if (!(self = [super initWithTitle:title])) return nil;
  _children = [NSMutableArray array];
  _names.emplace_back(title.UTF8String);
  self.side = 3;
  return self;
}

- (void)adopt:(SampleNode *)child {
  [_children addObject:child];
  child.parent = self;
  child->_names.insert(child->_names.begin(), _names.begin(), _names.end());
}

- (double)area {
  return [super area] + 1;
}

- (NSString *)nickname {
  return @"node";
}

- (NSString *)path {
  std::string path;
  for (const std::string &name : _names) path += "/" + name;
  return [NSString stringWithUTF8String:path.c_str()];
}

@end
