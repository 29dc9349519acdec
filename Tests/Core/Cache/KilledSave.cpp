#include "Cache/KilledSave.hpp"

#include <stdlib.h>

#include "Cache/CacheFileFixture.hpp"
#include "Harness/FakeDevice.hpp"
#include "Support/File.hpp"

namespace mnk::test {

void saveUntilKilled(const std::string& path) {
  TemporaryFile::setNamesAlways(path.ends_with(".named"));
  const auto device = FakeDevice::make();
  // A token is larger than several writes.
  auto cache = AttentionCache::make(
      device, {.kvHeads = 1, .headDim = kKilledSaveWidth, .capacity = 2, .dtype = DType::f32, .isStorageOnly = true});
  const auto shape = Shape::make({1, 1, kKilledSaveWidth});
  auto token = Tensor::zeros(device, DType::f32, *shape);
  // The device runs nothing, so the slots are filled here.
  const std::vector<float> elements(2 * kKilledSaveWidth, kKilledSaveElement);
  const bool isReady = cache && token && cache->view().keys.write(std::as_bytes(std::span(elements)));
  while (isReady) {
    if (*cache->nextPosition(0) == 2 && !cache->truncate(1, 0)) break;
    CommandEncoder encoder(device);
    if (!cache->save(path) || !cache->append(encoder, *token, *token, 0) || !encoder.commit()) break;
    if (*cache->nextPosition(0) == 2 && !cache->save(path)) break;
  }
  ::exit(1);
}

}  // namespace mnk::test
