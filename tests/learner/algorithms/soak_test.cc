// Memory of the learner core: constant over many updates, and small per member. ctest runs this executable twice;
// CoreSoak has the label soak.
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/learner/algorithms/testing.h"

namespace datacom::learner {
namespace {

// RssAnon, or VmRSS, of this process in MB.
double Megabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::stod(line.substr(field.size() + 1)) / 1024;
  }
  ADD_FAILURE() << "no " << field << " in /proc/self/status";
  return 0;
}

AlgorithmConfig FullConfig(int members) {
  AlgorithmConfig config = SmallConfig("datacom", members);
  config.obs_dim = 16, config.action_dim = 3, config.q_dim = 6, config.x_dim = 0;
  config.action_low.assign(3, -1), config.action_high.assign(3, 1);
  SetAllHidden({128, 128}, &config);
  config.learner.set_batch_size(64), config.learner.set_failure_batch_size(6);
  return config;
}

void Episode(Algorithm* algorithm, const AlgorithmConfig& config) {
  const std::vector<float> z(301 * config.q_dim, 0.1f), costs(301, 0.2f);
  algorithm->ApplyEpisodes({{0, 300, z.data(), costs.data()}});
}

// The core alone, without the process around it (gRPC, prefetch).
TEST(CoreMemory, AMemberTakesAtMost20MegabytesAndAProcessWithOneAtMost40) {
  const auto resident = [](int members) {
    const AlgorithmConfig config = FullConfig(members);
    const std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
    const Batch batch = RandomBatch(config, 1);
    algorithm->Update(batch);
    Episode(algorithm.get(), config);
    const State state = algorithm->Save();  // as for a checkpoint
    return Megabytes("VmRSS");
  };
  const double one = resident(1), many = resident(9);
  std::printf("resident: %.0f MB with one member, %.2f MB per further member\n", one, (many - one) / 8);
  EXPECT_LT(one, 40);
  EXPECT_GT(many, one) << "the measurement shows no difference";
  EXPECT_LT((many - one) / 8, 20);
}

TEST(CoreSoak, AnonymousMemoryIsFlatOver20000Updates) {
  const AlgorithmConfig config = FullConfig(1);
  const std::unique_ptr<Algorithm> algorithm = MakeAlgorithm(config);
  std::vector<Batch> batches;
  for (int i = 0; i < 8; ++i) batches.push_back(RandomBatch(config, i));
  std::vector<double> anonymous;  // every 1000 updates
  for (int update = 1; update <= 20000; ++update) {
    algorithm->Update(batches[update % batches.size()]);
    if (update % 300 == 0) Episode(algorithm.get(), config);
    if (update % 1000 != 0) continue;
    algorithm->GetActingParameters();
    algorithm->Save();
    ASSERT_EQ(algorithm->GetStats()[0].diverged(), 0) << "a frozen member would not be trained";
    anonymous.push_back(Megabytes("RssAnon"));
  }
  double mean = 0, slope = 0, spread = 0;  // least squares, without the first 2000 updates
  const int skipped = 2, n = static_cast<int>(anonymous.size()) - skipped;
  for (int i = 0; i < n; ++i) mean += anonymous[i + skipped] / n;
  for (int i = 0; i < n; ++i) {
    const double t = i - (n - 1) / 2.0;
    slope += t * (anonymous[i + skipped] - mean), spread += t * t;
  }
  std::printf("anonymous memory: %.1f MB, slope %.4f MB in 1000 updates\n", mean, slope / spread);
  EXPECT_LT(slope / spread, 0.02) << "MB in 1000 updates; 100 bytes per update would be 0.1";
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
