#include "learner/batch_decoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/base/status.h"
#include "common/safety/safe_map.h"

namespace datacom::learner {

absl::StatusOr<std::vector<NewRows>> NewRows::Split(const RowSchema& schema, const v1::DrawReply& reply, int members) {
  std::vector<NewRows> rows;
  for (int member = 0; member < members; ++member) rows.push_back(NewRows(schema, member));
  for (const v1::MemberBatch& batch : reply.batches()) {
    if (batch.member() >= rows.size()) {
      return absl::DataLossError(
          absl::StrCat("draw of update ", reply.update(), ": rows of member ", batch.member(), " of ", members));
    }
    RETURN_IF_ERROR(Annotate(rows[batch.member()].Add(batch), absl::StrCat("draw of update ", reply.update())));
  }
  for (const NewRows& own : rows) {
    if (!own.batches_.empty() && own.first_row() + own.count() == own.last().rows_seen()) continue;
    return absl::DataLossError(
        absl::StrCat("draw of update ", reply.update(), ": the newest rows of member ", own.member_, " are missing"));
  }
  return rows;
}

absl::Status NewRows::Add(const v1::MemberBatch& batch) {
  const size_t rows = batch.row_count();
  if (!batches_.empty() && batch.first_row() != first_row() + count_) {
    return absl::DataLossError(absl::StrCat("rows of member ", member_, " from ", batch.first_row(),
                                            " on follow rows up to ", first_row() + count_));
  }
  if (batch.main().size() != rows * schema_->learning_row_bytes() || batch.places().size() != rows * kPlaceBytes) {
    return absl::DataLossError(absl::StrCat(rows, " rows of member ", member_, " have ", batch.main().size(), " and ",
                                            batch.places().size(), " bytes, expected ",
                                            rows * schema_->learning_row_bytes(), " and ", rows * kPlaceBytes));
  }
  batches_.push_back(&batch);
  count_ += rows;
  return absl::OkStatus();
}

void NewRows::Copy(const ColumnPlace& place, void* out) const {
  char* to = static_cast<char*>(out);
  for (const v1::MemberBatch* batch : batches_) {
    const size_t bytes = place.bytes * batch->row_count();
    std::memcpy(to, batch->main().data() + place.before * batch->row_count(), bytes);
    to += bytes;
  }
}

std::vector<RowPlace> NewRows::Places() const {
  std::vector<RowPlace> places;
  places.reserve(count_);
  for (const v1::MemberBatch* batch : batches_) {
    const size_t rows = batch->row_count();
    const auto value = [&](size_t column, size_t row) {
      return At<uint32_t>(batch->places().data(), (column * rows + row) * sizeof(uint32_t));
    };
    for (size_t row = 0; row < rows; ++row)
      places.push_back({value(0, row), value(1, row), value(2, row), value(3, row)});
  }
  return places;
}

namespace {

// The arrays of a batch that are columns of every task.
constexpr std::pair<const char*, std::vector<float> Batch::*> kArrays[] = {
    {"observation", &Batch::observation},
    {"next_observation", &Batch::next_observation},
    {"cost", &Batch::cost},
    {"absorbing", &Batch::absorbing},
    {"action", &Batch::action},
    {"reward", &Batch::reward},
    {"last", &Batch::last}};
enum { kObservation, kNextObservation, kCost, kAbsorbing };  // the first of them

// Copies the first `used` numbers of each row of a column from a block of `rows` rows. Numbers of one byte become 0 or
// 1. `order`: which rows follow each other in `out`; null: all as they are.
void CopyColumn(const char* block, const ColumnPlace& place, size_t rows, size_t used, float* out,
                const uint32_t* order = nullptr) {
  const char* const column = block + place.before * rows;
  const size_t bytes = used * sizeof(float);
  if (order == nullptr && bytes == place.bytes) {
    std::memcpy(out, column, rows * bytes);
    return;
  }
  for (size_t i = 0; i < rows; ++i, out += used) {
    const char* const row = column + (order != nullptr ? order[i] : i) * place.bytes;
    if (place.bytes == 1) {
      *out = *row != 0 ? 1.0f : 0.0f;
    } else {
      std::memcpy(out, row, bytes);
    }
  }
}

absl::Status CheckSize(const std::string& block, size_t expected, int member, const char* what) {
  if (block.size() == expected) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("draw of member ", member, ": ", what, " has ", block.size(), " bytes, expected ", expected));
}

}  // namespace

BatchDecoder::BatchDecoder(const AlgorithmConfig& config, const RowSchema& schema,
                           std::shared_ptr<const ControlAffine> dynamics, const KnownRows& known,
                           const std::string& streams)
    : config_(config),
      schema_(schema),
      dynamics_(std::move(dynamics)),
      noise_actor_(streams + "noise.actor"),
      noise_next_(streams + "noise.next"),
      level_(streams + "level"),
      next_level_(streams + "level.next"),
      z_dim_(config.q_dim + config.x_dim),
      workspaces_(config.members.size()) {
  for (const auto& each : kArrays) {
    const ColumnPlace place = PlaceOf(schema_.learning(), each.first);
    columns_.push_back({place, std::max<size_t>(place.bytes / sizeof(float), 1),
                        [array = each.second](Batch* batch) -> std::vector<float>& { return batch->*array; }});
  }
  columns_[kObservation].used = columns_[kNextObservation].used = config.obs_dim;  // what networks see
  const std::vector<RuleColumn> own = ColumnsOf(config);
  for (size_t i = 0; i < own.size(); ++i) {
    columns_.push_back({PlaceOf(schema_.learning(), own[i].name), static_cast<size_t>(own[i].width),
                        [i](Batch* batch) -> std::vector<float>& { return batch->columns[i]; }});
  }
  for (Workspace& workspace : workspaces_) {
    workspace.known = known;
    workspace.wide.resize(schema.obs_dim());
    if (row_dim() != static_cast<size_t>(config.obs_dim)) {
      workspace.rows.resize(BatchSize(config) * row_dim());
      workspace.next_rows.resize(workspace.rows.size());
    }
    workspace.state.resize(z_dim_);
    workspace.command.resize(config.action_dim);
    workspace.failure_observation.resize(FailureRows(config) * row_dim());
    workspace.failure_next.resize(workspace.failure_observation.size());
  }
}

absl::Status BatchDecoder::Decode(v1::DrawReply* reply, PreparedUpdate* out) {
  const int members = static_cast<int>(config_.members.size());
  std::vector<NewRows> rows;
  std::vector<v1::MemberBatch*> batches(members);  // of each member, the one with its episodes
  if (config_.epoch_rows > 0) {
    ASSIGN_OR_RETURN(rows, NewRows::Split(schema_, *reply, members));
    for (v1::MemberBatch& batch : *reply->mutable_batches()) batches[batch.member()] = &batch;
  } else if (reply->batches_size() == members) {
    std::copy(reply->mutable_batches()->pointer_begin(), reply->mutable_batches()->pointer_end(), batches.begin());
  } else {
    return absl::DataLossError(absl::StrCat("draw of update ", reply->update(), ": batches of ", reply->batches_size(),
                                            " members, expected ", members));
  }
  out->update = reply->update();
  out->rows_seen.resize(members);
  out->inserted.resize(members);
  out->lanes.resize(members);
  out->abandoned.resize(members);
  out->faults.resize(members);
  std::vector<int> first_episode(members + 1);
  for (int member = 0; member < members; ++member)
    first_episode[member + 1] = first_episode[member] + batches[member]->episodes_size();
  out->episodes.clear();
  out->episodes.resize(first_episode[members]);
  Share(config_.team.get(), members, [&](int member) {
    workspaces_[member].status = DecodeMember(member, rows.empty() ? nullptr : &rows[member], batches[member],
                                              out->episodes.data() + first_episode[member], out);
  });
  for (const Workspace& workspace : workspaces_) RETURN_IF_ERROR(workspace.status);
  return absl::OkStatus();
}

absl::Status BatchDecoder::DecodeMember(int member, const NewRows* rows, v1::MemberBatch* from,
                                        FinishedEpisode* episodes, PreparedUpdate* out) {
  out->rows_seen[member] = from->rows_seen();
  out->inserted[member] = from->inserted();
  out->lanes[member] = from->lanes();
  out->abandoned[member] = from->abandoned();
  out->faults[member] = from->fault();
  if (rows == nullptr) {
    RETURN_IF_ERROR(DecodeMain(member, from->main(), &out->batch));
    RETURN_IF_ERROR(DecodeFailure(member, from->failure(), &out->batch));
  } else {
    RETURN_IF_ERROR(DecodeEpoch(member, *rows, &out->batch));
  }
  for (int i = 0; i < from->episodes_size(); ++i)
    RETURN_IF_ERROR(DecodeEpisode(member, from->mutable_episodes(i), &episodes[i]));
  if (rows != nullptr) return absl::OkStatus();
  const size_t begin = static_cast<size_t>(member) * BatchSize(config_) * config_.obs_dim;
  const Workspace& workspace = workspaces_[member];
  const bool split = !workspace.rows.empty();
  const float* const now = split ? workspace.rows.data() : &out->batch.observation[begin];
  if (dynamics_ != nullptr) {
    Features(member, now, &out->batch.now);
    Features(member, split ? workspace.next_rows.data() : &out->batch.next_observation[begin], &out->batch.next);
  }
  FillCommands(member, out->update, now, &out->batch);
  FillNoise(member, out->update, &out->batch);
  return absl::OkStatus();
}

absl::Status BatchDecoder::DecodeEpoch(int member, const NewRows& rows, Batch* batch) {
  const size_t count = config_.epoch_rows, begin = member * count;
  if (rows.count() != count) {
    return absl::DataLossError(
        absl::StrCat("draw of member ", member, ": ", rows.count(), " rows, expected the ", count, " of an update"));
  }
  const std::vector<RowPlace> places = rows.Places();
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return places[a] < places[b]; });
  std::vector<char>& values = workspaces_[member].column;
  for (const BatchColumn& column : columns_) {
    values.resize(count * column.place.bytes);
    rows.Copy(column.place, values.data());
    CopyColumn(values.data(), {0, column.place.bytes}, count, column.used,
               column.array(batch).data() + begin * column.used, order.data());
  }
  for (size_t i = 0; i < count; ++i) {
    const bool ends = i + 1 == count || places[order[i]].lane() != places[order[i + 1]].lane();
    batch->path_end[begin + i] = ends ? 1.0f : 0.0f;
  }
  return absl::OkStatus();
}

absl::Status BatchDecoder::DecodeMain(int member, const std::string& bytes, Batch* batch) {
  const size_t rows = BatchSize(config_), begin = member * rows;
  RETURN_IF_ERROR(CheckSize(bytes, rows * schema_.learning_row_bytes(), member, "main"));
  for (const BatchColumn& column : columns_) {
    CopyColumn(bytes.data(), column.place, rows, column.used, column.array(batch).data() + begin * column.used);
  }
  Workspace& workspace = workspaces_[member];
  if (workspace.rows.empty()) return absl::OkStatus();
  CopyColumn(bytes.data(), columns_[kObservation].place, rows, row_dim(), workspace.rows.data());
  CopyColumn(bytes.data(), columns_[kNextObservation].place, rows, row_dim(), workspace.next_rows.data());
  return absl::OkStatus();
}

absl::Status BatchDecoder::DecodeFailure(int member, const std::string& bytes, Batch* batch) {
  const size_t rows = FailureRows(config_), begin = member * rows;
  batch->failure_weight[member] = bytes.empty() || dynamics_ == nullptr ? 0.0f : 1.0f;
  if (dynamics_ == nullptr || rows == 0) return absl::OkStatus();
  if (bytes.empty()) {
    std::fill_n(batch->failure_z.begin() + begin * z_dim_, rows * z_dim_, 0.0f);
    std::fill_n(batch->failure_next_z.begin() + begin * z_dim_, rows * z_dim_, 0.0f);
    std::fill_n(batch->failure_cost.begin() + begin, rows, 0.0f);
    std::fill_n(batch->failure_absorbing.begin() + begin, rows, 0.0f);
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckSize(bytes, rows * schema_.learning_row_bytes(), member, "failure"));
  Workspace& workspace = workspaces_[member];
  CopyColumn(bytes.data(), columns_[kObservation].place, rows, row_dim(), workspace.failure_observation.data());
  CopyColumn(bytes.data(), columns_[kNextObservation].place, rows, row_dim(), workspace.failure_next.data());
  CopyColumn(bytes.data(), columns_[kCost].place, rows, 1, &batch->failure_cost[begin]);
  CopyColumn(bytes.data(), columns_[kAbsorbing].place, rows, 1, &batch->failure_absorbing[begin]);
  for (size_t row = 0; row < rows; ++row) {
    const size_t at = row * row_dim(), to = (begin + row) * z_dim_;
    Z(&workspace.failure_observation[at], &batch->failure_z[to], &workspace);
    Z(&workspace.failure_next[at], &batch->failure_next_z[to], &workspace);
  }
  return absl::OkStatus();
}

absl::Status BatchDecoder::DecodeEpisode(int member, v1::Episode* episode, FinishedEpisode* out) {
  out->member = member;
  const size_t states = static_cast<size_t>(episode->length()) + 1;
  const bool due = dynamics_ != nullptr && !episode->observations().empty();
  if (due) {
    RETURN_IF_ERROR(
        CheckSize(episode->observations(), states * row_dim() * sizeof(float), member, "episode.observations"));
    RETURN_IF_ERROR(CheckSize(episode->costs(), states * sizeof(float), member, "episode.costs"));
    out->costs.resize(states);
    std::memcpy(out->costs.data(), episode->costs().data(), states * sizeof(float));
    out->z.resize(states * z_dim_);
    std::vector<float> observation(row_dim());
    for (size_t i = 0; i < states; ++i) {
      std::memcpy(observation.data(), episode->observations().data() + i * row_dim() * sizeof(float),
                  row_dim() * sizeof(float));
      Z(observation.data(), &out->z[i * z_dim_], &workspaces_[member]);
    }
  }
  if (config_.epoch_rows > 0) out->costs = {0, static_cast<float>(episode->sum_cost())};
  episode->clear_observations();
  episode->clear_costs();
  out->facts = std::move(*episode);
  return absl::OkStatus();
}

void BatchDecoder::Z(const float* observation, float* z, Workspace* workspace) const {
  std::vector<double>&wide = workspace->wide, &state = workspace->state;
  std::copy_n(observation, row_dim(), wide.data());
  ControlAffineOut out;
  out.q = state.data();
  out.x = config_.x_dim > 0 ? state.data() + config_.q_dim : nullptr;
  dynamics_->Evaluate(wide.data(), out);
  for (int i = 0; i < z_dim_; ++i) z[i] = static_cast<float>(state[i]);
}

void BatchDecoder::Features(int member, const float* rows, ControlAffineBatch* features) {
  std::vector<double>&wide = workspaces_[member].wide, &state = workspaces_[member].state;
  KnownRows& known = workspaces_[member].known;
  for (int row = 0; row < BatchSize(config_); ++row) {
    const size_t at = static_cast<size_t>(member) * BatchSize(config_) + row;
    std::copy_n(rows + row * row_dim(), row_dim(), wide.data());
    ControlAffineOut out;
    out.q = state.data();
    out.f = &features->f[at * config_.q_dim];
    out.G = &features->G[at * config_.q_dim * config_.action_dim];
    if (config_.x_dim > 0) {
      out.x = state.data() + config_.q_dim;
      out.x_dot = &features->x_dot[at * config_.x_dim];
    }
    dynamics_->Evaluate(wide.data(), out);
    for (int i = 0; i < z_dim_; ++i) features->z[at * z_dim_ + i] = static_cast<float>(state[i]);
    known.Evaluate({out.q, out.x, out.f, out.G, out.x_dot, wide.data()},
                   features->known.data() + at * known.count() * JoinedRowSize(config_.action_dim));
  }
}

void BatchDecoder::FillCommands(int member, uint64_t update, const float* rows, Batch* batch) {
  const Imitation& imitation = config_.imitation;
  if (imitation.controller == nullptr) return;
  batch->imitation[member] = update <= imitation.until_update ? imitation.weight : 0;
  if (batch->imitation[member] == 0) return;  // nothing reads the commands
  Workspace& workspace = workspaces_[member];
  float* to = &batch->command[static_cast<size_t>(member) * BatchSize(config_) * config_.action_dim];
  for (int row = 0; row < BatchSize(config_); ++row) {
    std::copy_n(rows + row * row_dim(), row_dim(), workspace.wide.data());
    imitation.controller(workspace.wide.data(), workspace.command.data());
    for (const double value : workspace.command) *to++ = static_cast<float>(value);
  }
}

void BatchDecoder::FillNoise(int member, uint64_t update, Batch* batch) const {
  const int64_t count = static_cast<int64_t>(BatchSize(config_)) * config_.action_dim;
  const int64_t levels = static_cast<int64_t>(BatchSize(config_) + FailureRows(config_)) * config_.quantiles;
  const uint64_t seed = config_.members[member].seed;
  const auto key = [&](const std::string& name) { return StreamKey(name, {config_.run_seed, seed, update}); };
  FillNormal(key(noise_actor_), &batch->noise_actor[member * count], count);
  FillNormal(key(noise_next_), &batch->noise_next[member * count], count);
  if (levels == 0) return;
  FillUniform(key(level_), &batch->level[member * levels], levels);
  FillUniform(key(next_level_), &batch->next_level[member * levels], levels);
}

}  // namespace datacom::learner
// SPDX-License-Identifier: Apache-2.0
