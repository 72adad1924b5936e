#include "learner/dataset_draws.h"

#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/config/task_files.h"
#include "common/records/dataset.h"
#include "common/transitions/draw_rows.h"

namespace datacom::learner {
namespace {

constexpr int kDepth = 4;  // batches decoded ahead

std::string Printed(v1::TaskOptions options) {
  DropTaskFiles(&options);
  return options.ShortDebugString();
}

}  // namespace

DatasetDraws::DatasetDraws(std::shared_ptr<const Dataset> dataset, const AlgorithmConfig& config)
    : dataset_(std::move(dataset)), config_(config) {}

absl::StatusOr<v1::DrawReply> DatasetDraws::Next(std::chrono::milliseconds) {
  const uint64_t update = requests_.front();
  requests_.pop_front();
  v1::DrawReply reply;
  reply.set_update(update);
  const uint64_t rows = dataset_->rows(), failures = dataset_->failures().size();
  std::vector<uint64_t> numbers;
  for (const MemberConfig& member : config_.members) {
    v1::MemberBatch* batch = reply.add_batches();
    batch->set_rows_seen(rows);
    numbers.resize(BatchSize(config_));
    DrawRows(StreamKey("pretrain.draw.main", {config_.run_seed, member.seed, update}), rows, rows, BatchSize(config_),
             numbers.data());
    dataset_->Gather(numbers, batch->mutable_main());
    if (!UseFailures(failures, failures, FailureRows(config_))) continue;
    numbers.resize(FailureRows(config_));
    DrawRows(StreamKey("pretrain.draw.failure", {config_.run_seed, member.seed, update}), failures, failures,
             FailureRows(config_), numbers.data());
    for (uint64_t& number : numbers) number = dataset_->failures()[number];
    dataset_->Gather(numbers, batch->mutable_failure());
  }
  return reply;
}

absl::StatusOr<std::unique_ptr<Prefetch>> OpenPretraining(const RunSettings& settings, const RowSchema& schema,
                                                          const AlgorithmConfig& config,
                                                          std::shared_ptr<const ControlAffine> dynamics,
                                                          const KnownRows& known, uint64_t done) {
  const v1::Experiment& resolved = *settings.resolved;
  if (done >= resolved.pretrain().updates()) return nullptr;
  ASSIGN_OR_RETURN(Dataset dataset, Dataset::Read(resolved.pretrain().dataset(), resolved.task(), schema));
  RETURN_IF_ERROR(CheckDatasetOptions(resolved.pretrain().dataset(), dataset.manifest(), resolved.task_options()));
  const v1::Experiment& source = dataset.manifest().experiment();
  const std::string recorded = Printed(source.task_options()), wanted = Printed(resolved.task_options());
  if (recorded != wanted) {
    spdlog::warn("the dataset was recorded with task_options {{ {} }}, the run has {{ {} }}", recorded, wanted);
  }
  spdlog::info("dataset={} of run={} algorithm={} rows={} failures={}", resolved.pretrain().dataset(),
               dataset.manifest().run_id(), source.algorithm(), dataset.rows(), dataset.failures().size());
  return std::make_unique<Prefetch>(
      std::make_unique<DatasetDraws>(std::make_shared<const Dataset>(std::move(dataset)), config),
      BatchDecoder(config, schema, std::move(dynamics), known, "learner.pretrain."), config,
      Prefetch::Options{done + 1, resolved.pretrain().updates(), kDepth});
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
