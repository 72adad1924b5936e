// Tests how the learner's service hands out the large files of a run's task.
#include <memory>
#include <string>

#include "common/rpc/channel.h"
#include "common/rpc/learner_client.h"
#include "datacom/v1/task.pb.h"
#include "gtest/gtest.h"
#include "learner/learner_service.h"
#include "tests/testing/is_ok.h"
#include "tests/testing/temporary_folder.h"

namespace datacom::learner {
namespace {

using ::datacom::testing::IsOk;

TEST(TaskFileService, ActorsReadALargeFileOfTheRunInChunksAndNothingElse) {
  const std::string content = std::string(1'100'000, 'x') + std::string(1'100'000, 'y');
  v1::TaskOptions options;
  v1::TaskFile* const file = options.MutableExtension(v1::text_task)->add_file();
  file->set_sha256("a");
  file->set_gzip(content);
  options.MutableExtension(v1::text_task)->add_file()->set_sha256("missing");
  RunIdentity run;
  run.run_id = "run";
  const auto resolved = std::make_shared<v1::Experiment>();
  resolved->add_members();
  *resolved->mutable_task_options() = options;
  run.settings.resolved = resolved;
  const testing::TemporaryFolder folder;
  ServedState served(run, folder.path(), Clock::Real());
  LearnerService service("run", served, [](int) {});
  auto server = Server::Start("127.0.0.1:0", {&service});
  ASSERT_THAT(server, IsOk());
  const auto channel = MakeChannel((*server)->address());
  v1::TaskFileRequest request;
  *request.mutable_hello() = MakeHello("run", 0);
  request.set_sha256("a");
  const auto read = FetchTaskFile(channel, request);
  ASSERT_THAT(read, IsOk());
  EXPECT_TRUE(*read == content);
  for (const char* unknown : {"b", "missing", ""}) {
    request.set_sha256(unknown);
    EXPECT_TRUE(absl::IsNotFound(FetchTaskFile(channel, request).status())) << unknown;
  }
  *request.mutable_hello() = MakeHello("another", 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(FetchTaskFile(channel, request).status()));
  (*server)->Shutdown(std::chrono::milliseconds(0));
}

}  // namespace
}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
