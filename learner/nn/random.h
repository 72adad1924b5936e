// Named counter-based random numbers for the learner core, which links neither Abseil nor common/base: Philox 4x32-10
// (Salmon et al., 2011) keyed by a hash of a name and numbers. Same key, same numbers, anywhere. Value type, no state
// but its own.
#ifndef DATACOM_LEARNER_NN_RANDOM_H_
#define DATACOM_LEARNER_NN_RANDOM_H_

#include <cstdint>
#include <initializer_list>
#include <string>

namespace datacom::learner {

// FNV-1a over the name, then over the numbers' bytes.
inline uint64_t NamedKey(const std::string& name, std::initializer_list<uint64_t> numbers) {
  uint64_t hash = 0xcbf29ce484222325ull;
  const auto add = [&hash](uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3ull; };
  for (char c : name) add(static_cast<unsigned char>(c));
  for (uint64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 8) add((number >> shift) & 0xff);
  }
  return hash;
}

class NamedStream {
 public:
  explicit NamedStream(uint64_t key) : key_(key) {}

  double Uniform() {  // [0, 1), 53 bits
    const uint64_t high = Next(), low = Next();
    return static_cast<double>(((high << 32) | low) >> 11) * 0x1p-53;
  }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

 private:
  uint32_t Next() {
    if (used_ == 4) {
      Refill();
      used_ = 0;
    }
    return block_[used_++];
  }
  void Refill() {
    uint32_t x[4] = {static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0};
    uint32_t k0 = static_cast<uint32_t>(key_), k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = 0xD2511F53ull * x[0], b = 0xCD9E8D57ull * x[2];
      const uint32_t y0 = static_cast<uint32_t>(b >> 32) ^ x[1] ^ k0, y2 = static_cast<uint32_t>(a >> 32) ^ x[3] ^ k1;
      x[0] = y0, x[1] = static_cast<uint32_t>(b), x[2] = y2, x[3] = static_cast<uint32_t>(a);
      k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < 4; ++i) block_[i] = x[i];
    ++counter_;
  }

  uint64_t key_, counter_ = 0;
  uint32_t block_[4] = {};
  int used_ = 4;
};

}  // namespace datacom::learner

#endif  // DATACOM_LEARNER_NN_RANDOM_H_
