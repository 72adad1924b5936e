#include "common/nn/snapshot.h"

#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/nn/snapshot_proto.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/snapshots.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;
using ::testing::HasSubstr;

Snapshot Sample(uint32_t member) {
  Snapshot s = testing::SafeMapSnapshot(5, 1, 4, {8}, member);
  s.run_id = "run-1";
  s.run_seed = 42;
  s.member = member;
  s.member_seed = 17;
  s.version = {3, 1ull << 40};
  s.task = "cartpole";
  return s;
}

void ExpectEqual(const Snapshot& a, const Snapshot& b) {
  EXPECT_EQ(std::tie(a.run_id, a.run_seed, a.member, a.member_seed, a.version, a.task, a.acting_rule, a.scalars),
            std::tie(b.run_id, b.run_seed, b.member, b.member_seed, b.version, b.task, b.acting_rule, b.scalars));
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (size_t i = 0; i < a.arrays.size(); ++i) {
    EXPECT_EQ(a.arrays[i].name, b.arrays[i].name);
    EXPECT_EQ(a.arrays[i].shape, b.arrays[i].shape);
    EXPECT_EQ(a.arrays[i].values, b.arrays[i].values);
  }
}

TEST(Snapshot, SurvivesEncodingAndAlwaysEncodesAlike) {
  const Snapshot sample = Sample(2);
  const std::string encoded = EncodeSnapshot(sample);
  EXPECT_EQ(encoded, EncodeSnapshot(sample));
  const auto decoded = DecodeSnapshot(encoded);
  ASSERT_THAT(decoded, IsOk());
  ExpectEqual(*decoded, sample);
}

TEST(Snapshot, EveryTruncationIsRefused) {
  const std::string encoded = EncodeSnapshot(Sample(0));
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(DecodeSnapshot(encoded.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeSnapshot(encoded + "x").ok());
}

TEST(Snapshot, AFlippedBitIsRefusedInTheDataAndNeverCrashesInTheManifest) {
  const std::string encoded = EncodeSnapshot(Sample(0));
  std::string data;
  MakeManifest(Sample(0), &data);
  for (size_t i = 0; i < encoded.size(); ++i) {
    std::string damaged = encoded;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    const auto decoded = DecodeSnapshot(damaged);
    if (i >= encoded.size() - data.size()) {
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << i;
    }
  }
}

TEST(Snapshot, HostileShapesAreRefusedWithoutAllocatingThem) {
  std::string data;
  v1::SnapshotManifest manifest = MakeManifest(Sample(0), &data);
  for (const std::vector<uint32_t>& shape :
       {std::vector<uint32_t>{4294967295u, 4294967295u, 4294967295u}, std::vector<uint32_t>{65536, 65536, 65536, 65536},
        std::vector<uint32_t>{0, 5}, std::vector<uint32_t>{}}) {
    v1::SnapshotManifest hostile = manifest;
    hostile.mutable_arrays(0)->clear_shape();
    for (const uint32_t extent : shape) hostile.mutable_arrays(0)->add_shape(extent);
    const absl::Status status = SnapshotFromManifest(hostile, data).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("actor.mean.0.weight"));
  }
  manifest.mutable_arrays(1)->set_name("actor.mean.0.weight");
  EXPECT_THAT(std::string(SnapshotFromManifest(manifest, data).status().message()), HasSubstr("twice"));
}

TEST(Snapshot, AFileHoldsOneSnapshotPerMemberAndADamagedFileIsNamed) {
  const std::string path = ::testing::TempDir() + "/members.snapshot";
  ASSERT_THAT(WriteSnapshotFile(path, {Sample(0), Sample(1), Sample(2)}), IsOk());
  const auto read = ReadSnapshotFile(path);
  ASSERT_THAT(read, IsOk());
  ASSERT_EQ(read->size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) ExpectEqual((*read)[i], Sample(i));

  const std::string content = *ReadFile(path);
  for (const size_t size : {size_t{4}, size_t{10}, size_t{15}, content.size() / 2, content.size() - 1}) {
    ASSERT_THAT(WriteFileAtomically(path, content.substr(0, size)), IsOk());
    const absl::Status status = ReadSnapshotFile(path).status();
    EXPECT_FALSE(status.ok()) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  }
  ASSERT_THAT(WriteFileAtomically(path, content + "y"), IsOk());
  EXPECT_EQ(ReadSnapshotFile(path).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
