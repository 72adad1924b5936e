#include "replay/sampler.h"

#include "common/transitions/draw_rows.h"

namespace datacom::replay {
void DrawMain(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.main", {key.run_seed, key.member_seed, key.update}), available, capacity, count,
           numbers);
}

void DrawFailures(const DrawKey& key, uint64_t available, uint64_t capacity, uint32_t count, uint64_t* numbers) {
  DrawRows(StreamKey("replay.draw.failure", {key.run_seed, key.member_seed, key.update}), available, capacity, count,
           numbers);
}

}  // namespace datacom::replay
