#include "common/records/tensorboard.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "common/base/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom {
namespace {

using ::datacom::testing::IsOk;

// An independent decoder: frames, checksums, then the fields of Event by their wire types.
struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
};

class Reader {
 public:
  explicit Reader(absl::string_view data) : data_(data) {}
  bool done() const { return data_.empty(); }
  template <typename T>
  T Fixed() {
    T value;
    std::memcpy(&value, Bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(Bytes(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  absl::string_view Bytes(size_t count) {
    if (count > data_.size()) throw std::runtime_error("truncated");
    const absl::string_view bytes = data_.substr(0, count);
    data_.remove_prefix(count);
    return bytes;
  }

 private:
  absl::string_view data_;
};

void DecodeSummary(absl::string_view data, Event* event) {
  for (Reader summary(data); !summary.done();) {
    if (summary.Varint() != (1 << 3 | 2)) throw std::runtime_error("summary holds values only");
    Reader value(summary.Bytes(summary.Varint()));
    if (value.Varint() != (1 << 3 | 2)) throw std::runtime_error("tag first");
    const std::string tag(value.Bytes(value.Varint()));
    if (value.Varint() != (2 << 3 | 5)) throw std::runtime_error("simple_value second");
    event->scalars[tag] = value.Fixed<float>();
    if (!value.done()) throw std::runtime_error("more than tag and value");
  }
}

Event DecodeEvent(absl::string_view data) {
  Event event;
  for (Reader reader(data); !reader.done();) {
    const uint64_t key = reader.Varint();
    if (key == (1 << 3 | 1)) {
      event.wall_time = reader.Fixed<double>();
    } else if (key == (2 << 3 | 0)) {
      event.step = static_cast<int64_t>(reader.Varint());
    } else if (key == (3 << 3 | 2)) {
      event.file_version = std::string(reader.Bytes(reader.Varint()));
    } else if (key == (5 << 3 | 2)) {
      DecodeSummary(reader.Bytes(reader.Varint()), &event);
    } else {
      throw std::runtime_error("unknown field");
    }
  }
  return event;
}

std::vector<Event> ReadEvents(const std::string& path) {
  const std::string content = ReadFile(path).value();
  std::vector<Event> events;
  for (Reader reader(content); !reader.done();) {
    const absl::string_view length = reader.Bytes(8);
    if (reader.Fixed<uint32_t>() != MaskedCrc32c(length)) throw std::runtime_error("checksum of the length");
    const absl::string_view data = reader.Bytes(Reader(length).Fixed<uint64_t>());
    if (reader.Fixed<uint32_t>() != MaskedCrc32c(data)) throw std::runtime_error("checksum of the data");
    events.push_back(DecodeEvent(data));
  }
  return events;
}

class Events : public ::testing::Test {
 protected:
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
};

TEST(MaskedCrc32c, GivesTheValueOfItsDefinition) {
  EXPECT_EQ(MaskedCrc32c("123456789"), 0xc78ab0e5u);  // of 0xe3069283: rotated right by 15 bits, plus 0xa282ead8
}

TEST_F(Events, DecodeToTheWrittenValues) {
  std::string path;
  {
    auto writer = EventWriter::Open(folder_ + "/tensorboard/member_0").value();
    path = writer->path();
    ASSERT_THAT(writer->Append(10000, 1700000000.25, {{"eval/return", 3.5}, {"delta", -1e-3}, {"none", std::nan("")}}),
                IsOk());
    ASSERT_THAT(writer->Append(3000000000, 2, {{"delta", 1}}), IsOk());
    ASSERT_THAT(writer->Append(1, 3, {{"none", std::nan("")}}), IsOk());
    ASSERT_THAT(writer->Flush(/*sync=*/true), IsOk());
    EXPECT_EQ(writer->end().bytes, std::filesystem::file_size(path));
  }
  EXPECT_THAT(path, ::testing::HasSubstr("/tensorboard/member_0/events.out.tfevents."));
  const std::vector<Event> events = ReadEvents(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 10000);
  EXPECT_EQ(events[1].wall_time, 1700000000.25);
  EXPECT_THAT(events[1].scalars,
              ::testing::ElementsAre(::testing::Pair("delta", -1e-3f), ::testing::Pair("eval/return", 3.5f)));
  EXPECT_EQ(events[2].step, 3000000000);
}

TEST_F(Events, ResumeCutsToTheEndAndContinuesTheSameFile) {
  FileEnd end;
  {
    auto writer = EventWriter::Open(folder_).value();
    ASSERT_THAT(writer->Append(1, 1, {{"x", 1}}), IsOk());
    end = writer->end();
    ASSERT_THAT(writer->Append(2, 1, {{"x", 2}}), IsOk());
  }
  std::string path;
  {
    auto writer = EventWriter::Open(folder_, end).value();
    path = writer->path();
    ASSERT_THAT(writer->Append(3, 1, {{"x", 3}}), IsOk());
  }
  const std::vector<Event> events = ReadEvents(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 3);
}

TEST_F(Events, RefuseAFileShorterThanItsEnd) {
  { ASSERT_THAT(EventWriter::Open(folder_), IsOk()); }
  EXPECT_EQ(EventWriter::Open(folder_, {1000, std::string(64, '0')}).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace datacom
// SPDX-License-Identifier: Apache-2.0
