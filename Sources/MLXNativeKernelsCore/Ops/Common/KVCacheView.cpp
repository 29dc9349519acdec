#include "MLXNativeKernels/Generated/CacheViews.hpp"

namespace mnk {

uint64_t KVCacheView::slotOf(uint64_t position) const {
  if (wrap == KVWrap::linear || position < pinned || ringLength() == 0) return position;
  return pinned + (position - pinned) % ringLength();
}

}  // namespace mnk
