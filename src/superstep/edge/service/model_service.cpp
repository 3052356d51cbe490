#include "superstep/edge/service/model_service.h"

#include <fmt/format.h>

#include "superstep/base/system/asked_to_stop.h"
#include "superstep/base/system/stops_when.h"
#include "superstep/base/threads/own_threads.h"
#include "superstep/run/serve/sound.h"

namespace superstep::edge {
namespace {

std::shared_ptr<Version> compiled(const Blueprint& blueprint, const ServiceSettings& settings) {
  return std::make_shared<Version>(blueprint, target::find_target(settings.target),
                                   VersionSettings{.max_batch = settings.batcher.max_batch,
                                                   .workers = settings.workers,
                                                   .threads = settings.threads,
                                                   .row_by_row = settings.row_by_row});
}

// Before anybody is answered by it: what the model said when it was trained, it says now. Row by row, since
// there is a plan of one row.
void require_self_test(const Blueprint& blueprint, Version& version, const std::string& what) {
  if (!blueprint.self_test || !blueprint.ports.batched) return;
  const run::SelfTest& test = *blueprint.self_test;
  const std::int64_t rows = test.rows();
  std::vector<Tensor> inputs;
  for (const ServedPort& port : blueprint.ports.inputs) {
    const auto found = test.inputs.find(port.name);
    std::vector<std::int64_t> extents = port.shape.extents();
    extents.insert(extents.begin(), rows);
    if (found == test.inputs.end() || found->second.type() != port.element ||
        found->second.shape().extents() != extents)
      return;  // of another form of the model: --shape, other types
    inputs.push_back(found->second);
  }
  std::vector<Tensor> outputs = make_outputs(blueprint.ports, rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    const RowRange one{.inputs = inputs, .outputs = outputs, .first = row, .count = 1, .scaled = true};
    version.run(0, std::span(&one, 1));
  }
  std::map<std::string, Tensor> found;
  for (std::size_t i = 0; i < outputs.size(); ++i) found.emplace(blueprint.ports.outputs[i].name, outputs[i]);
  if (const std::string why = run::difference_from(test, found, blueprint.precision); !why.empty())
    throw Error(ErrorCode::bad_file, "does not pass its self-test: " + why, what,
                "its weights or this program's plan of it are not what they were when it was trained");
}

std::vector<RowRange> ranges_of(const Batch& batch) {
  std::vector<RowRange> ranges;
  for (const Piece& piece : batch.pieces)
    ranges.push_back({.inputs = piece.job->inputs,
                      .outputs = piece.job->outputs,
                      .first = piece.first,
                      .count = piece.count});
  return ranges;
}

}  // namespace

ModelService::ModelService(std::string name, ModelSource source, const ServiceSettings& settings)
    : name_(std::move(name)), settings_(settings), source_(std::move(source)), batcher_(settings.batcher) {
  const Blueprint blueprint = read_blueprint(source_, target::find_target(settings_.target));
  current_ = compiled(blueprint, settings_);
  require_self_test(blueprint, *current_, source_.what);
  if (blueprint.reads_file) widen(blueprint, *current_);
  try {
    if (!wide_)
      widening_ = start_thread([this, blueprint, version = current_] { widen(blueprint, *version); });
    for (int worker = 0; worker < settings_.workers; ++worker)
      workers_.push_back(start_thread([this, worker] { work(worker); }));
  } catch (...) {
    finish_workers();
    throw;
  }
}

ModelService::~ModelService() { finish_workers(); }

void ModelService::finish_workers() {
  batcher_.close();
  batcher_.abandon();
  stop_widening();
  if (widening_.joinable()) widening_.join();
  for (std::thread& worker : workers_) worker.join();
}

void ModelService::stop_widening() { stopping_ = true; }

bool ModelService::is_ending() const { return stopping_ || asked_to_stop(); }

// Answers are given meanwhile, by the plans that there are; where more cannot be had, by those for good.
void ModelService::widen(const Blueprint& blueprint, Version& version) {
  const StopsWhen not_wanted([this] { return is_ending(); });
  try {
    version.widen(blueprint, target::find_target(settings_.target));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::interrupted)  // the server ends
      fmt::print(stderr, "superstep serve: {}: answers in smaller batches: {}\n", name_, error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "superstep serve: {}: answers in smaller batches: {}\n", name_, error.what());
  }
  wide_ = true;
  wide_.notify_all();
}

void ModelService::wait_until_wide() const { wide_.wait(false); }

// A model says something of anything; what it has not learnt from is counted, and said once.
void ModelService::look_at_inputs(const Piece& piece) {
  const Job& job = *piece.job;
  const ServedPorts& ports = job.version->ports();
  std::int64_t most = 0;
  const run::InputRange* beyond = nullptr;
  for (const run::InputRange& range : job.version->ranges())
    for (std::size_t i = 0; ports.batched && i < ports.inputs.size(); ++i) {
      if (ports.inputs[i].name != range.name) continue;
      const std::int64_t rows =
          run::rows_outside(job.inputs[i], range.least(), range.most(), piece.first, piece.count);
      if (rows > most) beyond = &range;
      most = std::max(most, rows);
    }
  if (most == 0 || outside_of_training_.fetch_add(static_cast<std::uint64_t>(most)) > 0) return;
  fmt::print(stderr,
             "superstep serve: {}: values of '{}' are outside of the range that the training had ({:g} to "
             "{:g}); further "
             "ones are counted (/metrics)\n",
             name_, beyond->name, beyond->low, beyond->high);
}

// Answers that are no numbers go out as they are, since who asked may know what they mean; they are counted,
// and said once.
void ModelService::look_at(const Batch& batch) {
  for (const Piece& piece : batch.pieces) {
    look_at_inputs(piece);
    const Job& job = *piece.job;
    const bool batched = job.version->ports().batched;
    const auto bad_rows = [&](const std::vector<Tensor>& tensors) {
      std::int64_t most = 0;
      for (const Tensor& tensor : tensors)
        most = std::max(most, batched ? run::rows_not_finite(tensor, piece.first, piece.count)
                                      : std::int64_t{run::count_not_finite(tensor) > 0});
      return static_cast<std::uint64_t>(most);
    };
    const std::uint64_t of_outputs = bad_rows(job.outputs);
    if (of_outputs == 0) continue;
    const std::uint64_t of_inputs = std::min(of_outputs, bad_rows(job.inputs));
    inputs_not_finite_ += of_inputs;
    if (of_outputs == of_inputs || outputs_not_finite_.fetch_add(of_outputs - of_inputs) > 0) continue;
    fmt::print(stderr, "superstep serve: {}: outputs are not finite; further ones are counted (/metrics)\n",
               name_);
  }
}

void ModelService::work(int worker) {
  while (const auto batch = batcher_.take()) {
    std::string failure;
    try {
      batch->pieces.front().job->version->run(worker, ranges_of(*batch));
      look_at(*batch);
    } catch (const std::exception& error) {
      failure = error.what();
      if (failure.empty()) failure = "the model failed";
    }
    executions_.fetch_add(1, std::memory_order_relaxed);
    batcher_.finish(*batch, failure);
  }
}

ModelSource ModelService::source() const {
  const std::scoped_lock lock(mutex_);
  return source_;
}

std::shared_ptr<Version> ModelService::current() const {
  const std::scoped_lock lock(mutex_);
  return current_;
}

std::shared_ptr<Version> ModelService::former() const {
  const std::scoped_lock lock(mutex_);
  return former_;
}

std::shared_ptr<Version> ModelService::find(std::string_view version) const {
  const std::scoped_lock lock(mutex_);
  if (version.empty() || (current_ && current_->id() == version)) return current_;
  return former_ && former_->id() == version ? former_ : nullptr;
}

bool ModelService::reload() { return replace(source()); }

bool ModelService::replace(const ModelSource& source) {
  const std::scoped_lock change(change_);
  const StopsWhen not_wanted([this] { return is_ending(); });
  try {
    const Blueprint blueprint = read_blueprint(source, target::find_target(settings_.target));
    const std::shared_ptr<Version> present = current();
    if (present && present->id() == blueprint.version) return false;
    if (present && !(present->ports() == blueprint.ports))
      throw Error(ErrorCode::unsupported, "has other inputs or outputs than what is served under this name",
                  source.what, "serve it under another name");
    std::shared_ptr<Version> next = compiled(blueprint, settings_);
    require_self_test(blueprint, *next, source.what);
    next->widen(blueprint, target::find_target(settings_.target));
    const std::scoped_lock lock(mutex_);
    former_ = std::exchange(current_, std::move(next));
    source_ = source;
    ++swaps_.done;
    return true;
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    ++swaps_.failed;
    throw;
  }
}

void ModelService::roll_back() {
  const std::scoped_lock change(change_);
  const std::scoped_lock lock(mutex_);
  if (!former_)
    throw Error(ErrorCode::invalid_argument, "there is no former version to go back to", name_,
                "versions are kept from one load to the next");
  std::swap(current_, former_);
  ++swaps_.rolled_back;
}

void ModelService::unload() {
  const std::scoped_lock change(change_);
  std::shared_ptr<Version> present, past;  // given back outside of the lock
  const std::scoped_lock lock(mutex_);
  present = std::move(current_);
  past = std::move(former_);
  current_ = nullptr;
  former_ = nullptr;
}

ModelService::Swaps ModelService::swaps() const {
  const std::scoped_lock lock(mutex_);
  return swaps_;
}

}  // namespace superstep::edge
