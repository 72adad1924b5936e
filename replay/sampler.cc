#include "replay/sampler.h"

#include <algorithm>

#include "common/base/random.h"

namespace datacom {
namespace {

void Draw(uint64_t stream_key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  RandomStream stream(stream_key);
  const uint64_t held = std::min(available, capacity);
  for (uint32_t i = 0; i < count; ++i) numbers[i] = available - held + stream.Below(held);
}

}  // namespace

void DrawMain(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  Draw(StreamKey("replay.draw.main", {key.run_seed, key.member_seed, key.update}), available, capacity, count, numbers);
}

void DrawFailures(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  Draw(StreamKey("replay.draw.failure", {key.run_seed, key.member_seed, key.update}), available, capacity, count,
       numbers);
}

}  // namespace datacom
