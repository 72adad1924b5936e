// A replay's folder in which one file was changed (replay/store.h): Store::Open refuses it, or the replay answers the
// same after every restart and can be used. Without new checksums an accepted folder has the content it had before.
//
// Input: a byte that says which file and which checksums to recompute; then the payload of the file of sessions, or,
// for kPatch and the other files, pairs of a place (u16) and a byte to put there.
#include <filesystem>
#include <map>

#include "tests/fuzz/credit_bytes.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/replay_inputs.h"
#include "tests/fuzz/ring_bytes.h"
#include "tests/testing/manual_clock.h"

namespace datacom::fuzz {
namespace {

namespace fs = std::filesystem;
using ::datacom::replay::testing::Client;
using ::datacom::replay::testing::MakeChunk;
using ::datacom::replay::testing::SimpleRows;

enum Flags { kRows = 0, kFailures = 1, kCredit = 2, kSessions = 3, kSealHeader = 4, kSealContent = 8, kPatch = 16 };
constexpr const char* kNames[] = {"member_0.rows", "member_0.failures", "credit", "sessions"};

std::string Path(const std::string& name) { return Folder() + "/replay/" + name; }

void Send(replay::Store* store, Client* client, uint32_t member, uint32_t rows) {
  client->Hear(store);
  rows = std::min<uint32_t>(rows, static_cast<uint32_t>(client->limit[member] - client->next[member]));
  if (rows == 0) return;
  const uint64_t next = client->next[member];
  MUST(client->Send(store, MakeChunk(member, next, SimpleRows(next, rows))) == absl::StatusCode::kOk);
}

// The files of a replay with two sessions whose rings have wrapped.
std::map<std::string, std::string> SoundFiles() {
  ManualClock clock;
  fs::remove_all(Folder() + "/replay");
  auto store = OpenStore(Folder() + "/replay", &clock, false);
  MustAccept(store.status());
  Client clients[2];
  clients[0].Open(store->get(), "actor-0", 1, 2);
  clients[1].Open(store->get(), "actor-1", 2, 1);
  for (uint64_t round = 0; round < 200; ++round) {
    for (Client& client : clients) {
      for (const auto& [member, limit] : std::map<uint32_t, uint64_t>(client.limit))
        Send(store->get(), &client, member, 5);
    }
    v1::ReplayInfo info;
    (*store)->Info(&info);
    const uint64_t rows = std::min(info.members(0).inserted(), info.members(1).inserted());
    if (rows > 10) MustAccept((*store)->Announce(rows - 10));
  }
  store->reset();
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(Folder() + "/replay"))
    files[entry.path().filename().string()] = ReadBytes(entry.path().string());
  return files;
}

const std::map<std::string, std::string>& Sound() {
  static const std::map<std::string, std::string> files = SoundFiles();
  return files;
}

void WriteSound() {
  fs::create_directories(Folder() + "/replay");
  for (const auto& [name, content] : Sound()) WriteBytes(Path(name), content);
}

const std::string& SoundContent() {
  static const std::string content = [] {
    WriteSound();
    ManualClock clock;
    auto store = OpenStore(Folder() + "/replay", &clock, false);
    MustAccept(store.status());
    return Content(store->get(), true);
  }();
  return content;
}

void Patch(Input* input, std::string* file) {
  for (int i = 0; i < 64 && !input->empty() && !file->empty(); ++i) {
    const size_t at = input->Short() % file->size();
    (*file)[at] = static_cast<char>(input->Byte());
  }
}

std::string Changed(uint8_t flags, Input* input) {
  const int which = flags & 3;
  const std::string& sound = Sound().at(kNames[which]);
  std::string file = sound;
  if (which == kSessions) {
    std::string payload = flags & kPatch ? file.substr(24) : std::string(input->Rest());
    Patch(input, &payload);
    return flags & kSealHeader ? FrameLike(sound, payload) : sound.substr(0, 24) + payload;
  }
  Patch(input, &file);
  if (which == kCredit) {
    if (flags & kSealHeader) SealCreditHeader(sound, &file);
    if (flags & kSealContent) SealCreditWords(&file);
    return file;
  }
  const uint64_t row_bytes = Schema().stored_row_bytes();
  if (flags & kSealContent) SealRingWords(&file);
  if (flags & kSealHeader) SealRingHeader(sound, &file);
  if (flags & kSealContent) SealRingBlocks(which == kRows ? row_bytes : row_bytes + kFailureHeaderBytes, &file);
  return file;
}

// What an actor, a learner and a restart do. `store` is open.
void Use(std::unique_ptr<replay::Store> store, ManualClock* clock) {
  const auto registered = store->Register("actor-0", 9, 1);
  if (registered.ok()) {
    const auto stream = store->Connect(registered->session(), 9);
    MustAccept(stream.status());
    replay::InsertProgress progress;
    v1::InsertReply reply;
    MustAccept(store->Progress(registered->session(), *stream, &progress, &reply).status());
    for (const v1::Credit& credit : reply.credit())
      MustAccept(
          store->Insert(registered->session(), *stream, MakeChunk(credit.member(), 0, SimpleRows(0, 3)), &reply));
    store->Disconnect(registered->session(), *stream);
  } else {
    MustRefuse(registered.status());
  }
  const absl::Status announced = store->Announce(20, /*incarnation=*/1);
  if (!announced.ok()) MustRefuse(announced);
  clock->Advance(std::chrono::seconds(3));
  MustAccept(store->Tick());
  const std::string content = Content(store.get(), false);
  store = nullptr;
  auto again = OpenStore(Folder() + "/replay", clock, false);
  MustAccept(again.status());
  MUST(Content(again->get(), false) == content);
  clock->Advance(std::chrono::seconds(40));  // all leases end
  MustAccept((*again)->Tick());
}

}  // namespace

static void Run(absl::string_view bytes) {
  SoundContent();
  Input input(bytes);
  const uint8_t flags = input.Byte();
  WriteSound();
  const std::string file = Changed(flags, &input);
  const char* name = kNames[flags & 3];
  const bool same = file == Sound().at(name);
  WriteBytes(Path(name), file);
  ManualClock clock;
  auto store = OpenStore(Folder() + "/replay", &clock, false);
  if (!store.ok()) {
    MustRefuse(store.status());
    MUST_BECAUSE(!same, store.status().ToString());
    return;
  }
  const std::string content = Content(store->get(), true);
  if (same || !(flags & (kSealHeader | kSealContent))) MUST(content == SoundContent());
  store->reset();
  store = OpenStore(Folder() + "/replay", &clock, false);
  MustAccept(store.status());
  MUST(Content(store->get(), true) == content);
  Use(*std::move(store), &clock);
}

static std::vector<Seed> Seeds() {
  const auto patch = [](uint16_t at, uint8_t value) { return Short(at) + std::string(1, static_cast<char>(value)); };
  const auto flags = [](int bits) { return std::string(1, static_cast<char>(bits)); };
  const std::string sessions = Sound().at("sessions").substr(24);
  std::vector<Seed> seeds = {{"sessions", flags(kSessions | kSealHeader) + sessions},
                             {"sessions_unsealed", flags(kSessions) + sessions},
                             {"sessions_patch", flags(kSessions | kSealHeader | kPatch) + patch(30, 7)}};
  for (const int which : {kRows, kFailures, kCredit}) {
    const std::string name = kNames[which];
    seeds.push_back({name, flags(which) + patch(200, 1) + patch(4300, 2)});
    seeds.push_back({name + "_header", flags(which | kSealHeader) + patch(24, 1)});
    seeds.push_back({name + "_words", flags(which | kSealContent) + patch(320, 9) + patch(4096, 3)});
    seeds.push_back({name + "_records", flags(which | kSealHeader | kSealContent) + patch(4200, 255) + patch(4104, 1)});
  }
  return seeds;
}

static const Target kTarget("replay_folder", Run, Seeds);

}  // namespace datacom::fuzz
// SPDX-License-Identifier: Apache-2.0
