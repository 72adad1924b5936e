// What snapshots cost on the network, and what half precision does to the actions.
//
//   datacom-bench-snapshots bytes            bytes of the messages that one actor receives when every member is
//                                            published once, from a real learner's service over loopback: all members
//                                            for every actor, and the members that the replay's division gives it (mean
//                                            and largest over the actors); with the size of a float16 snapshot, too
//   datacom-bench-snapshots half FILE STEPS  for each snapshot in FILE (policies/epoch_NNNN.snapshot of a run): plays
//                                            STEPS steps with the float32 policy; in every state compares its executed
//                                            action and k with those of the policy rounded to float16 and to bfloat16,
//                                            with the same noise
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "Eigen/Core"
#include "absl/strings/numbers.h"
#include "common/acting/acting_rule.h"
#include "common/base/random.h"
#include "common/nn/snapshot_proto.h"
#include "common/rpc/channel.h"
#include "common/tasks/task.h"
#include "datacom/v1/learner.grpc.pb.h"
#include "learner/learner_service.h"
#include "replay/division.h"
#include "tests/testing/endless_actor_peers.h"

namespace datacom {
namespace {

constexpr double kPublicationsPerSecond = 100.0 / 16;  // 100 updates/s, publish_period 16

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "datacom-bench-snapshots: %s\n", std::string(value.status().message()).c_str());
  std::exit(1);
}

// The members of each of `actors` actors that registered one after the other with as many environments each.
std::vector<std::vector<uint32_t>> Slices(uint32_t members, uint32_t actors) {
  std::vector<SessionShare> shares;
  for (uint32_t a = 0; a < actors; ++a) {
    shares.push_back({members, std::vector<uint32_t>(members)});
    const auto divided = DivideMembers(members, shares);
    for (uint32_t s = 0; s <= a; ++s) shares[s].lanes = divided[s];
  }
  std::vector<std::vector<uint32_t>> slices(actors);
  for (uint32_t a = 0; a < actors; ++a) {
    for (uint32_t m = 0; m < members; ++m) {
      if (shares[a].lanes[m] > 0) slices[a].push_back(m);
    }
  }
  return slices;
}

class Learner {
 public:
  explicit Learner(uint32_t members)
      : run_(MakeRun(members)), served_(run_, "/tmp", Clock::Real()), service_("run", served_, [](int) {}) {
    server_ = Must(Server::Start("127.0.0.1:0", {&service_}));
    channel_ = MakeChannel(server_->address());
  }
  ~Learner() {
    served_.snapshots.Close();
    server_->Shutdown(std::chrono::milliseconds(0));
  }
  // Bytes of the messages that each actor gets for one publication of every member.
  std::vector<uint64_t> Publish(const std::vector<std::vector<uint32_t>>& slices) {
    const auto stub = v1::Learner::NewStub(channel_);
    Snapshot snapshot = testing::SnapshotOf("air_hockey");
    snapshot.run_id = "run";
    for (const auto& slice : slices) {
      for (const uint32_t member : slice) {
        snapshot.member = member;
        snapshot.version = {1, 16};
        served_.snapshots.Publish(snapshot);
      }
    }
    std::vector<uint64_t> bytes;
    for (const auto& slice : slices) {
      v1::SubscribeRequest request;
      *request.mutable_hello() = MakeHello("run", 0);
      for (const uint32_t member : slice) request.add_members()->set_member(member);
      grpc::ClientContext context;
      const auto reader = stub->Subscribe(&context, request);
      v1::SnapshotChunk chunk;
      uint64_t sum = 0;
      for (size_t complete = 0; complete < slice.size() && reader->Read(&chunk); complete += chunk.last())
        sum += chunk.ByteSizeLong();
      bytes.push_back(sum);
      context.TryCancel();
    }
    return bytes;
  }

 private:
  static learner::RunIdentity MakeRun(uint32_t members) {
    learner::RunIdentity run;
    run.run_id = "run";
    for (uint32_t m = 0; m < members; ++m) run.settings.members.push_back({m, "", 0});
    return run;
  }
  const learner::RunIdentity run_;
  learner::ServedState served_;
  learner::LearnerService service_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

// Bytes of one snapshot in float16, without the frames of its messages.
double HalfBytes() {
  std::string data;
  const v1::SnapshotManifest manifest = MakeManifest(testing::SnapshotOf("air_hockey"), &data, v1::FLOAT16);
  return static_cast<double>(manifest.ByteSizeLong() + data.size());
}

void Bytes() {
  std::printf(
      "D-ATACOM, air hockey, nets 2 x 128. kB per publication of all members and actor; MB/s and actor at 100\n");
  std::printf("updates/s of every member and publish_period 16 in brackets.\n");
  std::printf("members actors   all members, float32     slice, mean          slice, largest       mean, float16\n");
  for (const uint32_t members : {8u, 64u}) {
    for (const uint32_t actors : {1u, 2u, 4u, 8u}) {
      const std::vector<std::vector<uint32_t>> slices = Slices(members, actors);
      const uint64_t all = Learner(members).Publish(Slices(members, 1)).front();
      const std::vector<uint64_t> own = Learner(members).Publish(slices);
      const double pairs = static_cast<double>(std::accumulate(
          slices.begin(), slices.end(), size_t{0}, [](size_t sum, const auto& slice) { return sum + slice.size(); }));
      std::printf("%7u %6u", members, actors);
      const auto print = [](double bytes) {
        std::printf("  %10.1f (%6.2f)", bytes * 1e-3, bytes * 1e-6 * kPublicationsPerSecond);
      };
      const auto mean = [&](const std::vector<uint64_t>& bytes) {
        double sum = 0;
        for (const uint64_t each : bytes) sum += static_cast<double>(each);
        return sum / actors;
      };
      print(static_cast<double>(all));
      print(mean(own));
      print(static_cast<double>(*std::max_element(own.begin(), own.end())));
      print(pairs / actors * HalfBytes());
      std::printf("\n");
    }
  }
}

Snapshot AsFloat16(const Snapshot& snapshot) {
  std::string data;
  const v1::SnapshotManifest manifest = MakeManifest(snapshot, &data, v1::FLOAT16);
  return Must(SnapshotFromManifest(manifest, data));
}

Snapshot AsBfloat16(Snapshot snapshot) {
  for (NamedArray& array : snapshot.arrays) {
    for (float& value : array.values) value = static_cast<float>(Eigen::bfloat16(value));
  }
  return snapshot;
}

struct Differences {
  void Add(double difference) {
    largest = std::max(largest, std::abs(difference));
    sum += std::abs(difference);
    ++count;
  }
  double largest = 0, sum = 0;
  uint64_t count = 0;
};

// A rule and what it decided last.
struct Policy {
  Policy(const Snapshot& snapshot, const TaskModel& model)
      : rule(Must(MakeActingRule(snapshot, model, 1))), actions(model.spec.action_dim), raw(model.spec.action_dim) {}
  void Act(const ActingInputs& inputs) {
    rule->Act(1, inputs, actions.data(), {&constraint, nullptr, nullptr, raw.data()});
    executed = rule->executed() != nullptr ? rule->executed() : actions.data();
  }
  std::unique_ptr<ActingRule> rule;
  std::vector<float> actions, raw;
  const float* executed = nullptr;
  double constraint = 0;
  Differences action_differences, constraint_differences;
};

void Half(const Snapshot& snapshot, int steps) {
  const TaskModel model = Must(MakeTaskModel(snapshot.task, v1::TaskOptions()));
  const auto task = Must(MakeTask(snapshot.task, v1::TaskOptions()));
  Policy exact(snapshot, model), half(AsFloat16(snapshot), model), brain(AsBfloat16(snapshot), model);
  std::vector<double> observation(model.spec.obs_dim), action(model.spec.action_dim);
  std::vector<float> narrow(model.spec.obs_dim), noise(exact.rule->noise_dim());
  RandomStream stream(StreamKey("bench.half", {snapshot.member}));
  float cost = 0;
  int left = 0;
  for (int step = 0; step < steps; ++step) {
    if (left == 0) {
      task->Reset(&stream, observation.data());
      left = model.spec.horizon;
      cost = 0;
    }
    narrow.assign(observation.begin(), observation.end());
    FillNormal(StreamKey("bench.noise", {snapshot.member, static_cast<uint64_t>(step)}), noise.data(), noise.size());
    const ActingInputs inputs = {narrow.data(), noise.data(), &cost};
    for (Policy* policy : {&exact, &half, &brain}) policy->Act(inputs);
    for (Policy* policy : {&half, &brain}) {
      for (int i = 0; i < model.spec.action_dim; ++i) {
        const double range = model.spec.action_high[i] - model.spec.action_low[i];
        policy->action_differences.Add((policy->executed[i] - exact.executed[i]) / range);
      }
      policy->constraint_differences.Add(policy->constraint - exact.constraint);
    }
    action.assign(exact.executed, exact.executed + model.spec.action_dim);
    const StepResult result = task->Step(action.data(), observation.data());
    cost = static_cast<float>(result.cost);
    left = result.absorbing || !result.valid ? 0 : left - 1;
  }
  for (const auto& [name, policy] : {std::pair("float16", &half), std::pair("bfloat16", &brain)}) {
    const auto mean = [](const Differences& each) { return each.sum / static_cast<double>(each.count); };
    std::printf("%s %s member %u update %llu, %d states, %s: executed action, of its range, mean %.2e largest %.2e",
                snapshot.task.c_str(), snapshot.acting_rule.c_str(), snapshot.member,
                static_cast<unsigned long long>(snapshot.version.update), steps, name, mean(policy->action_differences),
                policy->action_differences.largest);
    if (exact.rule->has_constraint()) {
      std::printf("; k mean %.2e largest %.2e", mean(policy->constraint_differences),
                  policy->constraint_differences.largest);
    }
    std::printf("\n");
  }
}

int Main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  int steps = 0;
  if (mode == "bytes" && argc == 2) {
    Bytes();
  } else if (mode == "half" && argc == 4 && absl::SimpleAtoi(argv[3], &steps) && steps > 0) {
    for (const Snapshot& snapshot : Must(ReadSnapshotFile(argv[2]))) Half(snapshot, steps);
  } else {
    std::fprintf(stderr, "usage: datacom-bench-snapshots bytes | half FILE STEPS\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace datacom

int main(int argc, char** argv) { return datacom::Main(argc, argv); }
