#include "superstep/run/sample/chains.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "superstep/base/progress.h"
#include "superstep/base/statistics.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/base/text.h"
#include "superstep/run/ranks/communicator.h"
#include "superstep/sampling/laplace.h"

namespace superstep::run {
namespace {

// What the threads tell each other of how far all chains are.
struct Shared {
  std::unique_ptr<Progress> progress;
  std::atomic<std::int64_t> iterations{0}, divergent{0};
  std::atomic<bool> stopped{false};
};

// One chain on its way.
class ChainRun {
 public:
  ChainRun(const ChainJob& job, int number, PosteriorDensity& density, std::optional<ChainRecord> before)
      : job_(job), number_(number), density_(density) {
    if (before) {
      record_ = std::move(*before);
      keep_first(record_, job.draws, job.posterior.size());
    } else {
      record_.state = job.starts.empty()
                          ? sampling::ChainState{.position = job.posterior.start(*job.data, number)}
                          : job.starts[static_cast<std::size_t>(number)];
    }
  }

  std::int64_t iterations() const { return static_cast<std::int64_t>(record_.iterations.size()); }
  std::int64_t wanted() const { return job_.settings.warm_up + job_.draws; }
  ChainRecord& record() { return record_; }

  void run(Shared& shared) {
    if (iterations() >= wanted()) return;
    try {
      sampling::Chain chain(density_, job_.settings, number_, record_.state);
      Stopwatch since_saved;
      while (iterations() < wanted()) {
        step(chain, shared);
        if (interrupted()) throw Error(ErrorCode::interrupted, "between two iterations");
        if (since_saved.seconds() < job_.checkpoint_seconds) continue;
        save();
        since_saved = Stopwatch();
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::interrupted) throw;
      shared.stopped = true;
    }
    save();
  }

 private:
  // The record is whole whenever this is left.
  void step(sampling::Chain& chain, Shared& shared) {
    const Stopwatch watch;
    const sampling::Iteration made = chain.next();
    if (!made.warm_up) {
      const auto predictions = density_.predict(chain.position());
      add_draw(record_, chain.position(), predictions, density_.log_likelihoods(chain.position()));
    }
    record_.iterations.push_back(made);
    record_.state = chain.state();
    (made.warm_up ? record_.warm_up_seconds : record_.draw_seconds) += watch.seconds();
    if (made.divergent && !made.warm_up) ++shared.divergent;
    const std::int64_t done = ++shared.iterations;
    if (shared.progress)
      shared.progress->update(
          static_cast<double>(done),
          fmt::format(
              "log density {:.5g}{}", made.log_density,
              shared.divergent > 0 ? fmt::format(", {} divergent", shared.divergent.load()) : std::string()));
  }

  // A chain without an iteration is where it will begin again.
  void save() const {
    if (!job_.folder.empty() && !record_.iterations.empty())
      write_chain(chain_file(job_.folder, number_), job_.posterior, *job_.data, record_);
  }

  const ChainJob& job_;
  int number_;
  PosteriorDensity& density_;
  ChainRecord record_;
};

// "a gradient takes 210 us: 4 chains of 1,000 + 1,000 iterations of 1,000 steps take about 28 min on 2
// threads".
std::string expectation(const ChainJob& job, double seconds, std::int64_t iterations, int chains,
                        int threads) {
  const bool fixed = job.settings.method != sampling::Method::nuts;
  const double steps = job.settings.method == sampling::Method::hmc ? job.settings.leapfrog_steps
                       : fixed                                      ? 1
                               : std::ldexp(1, job.settings.most_doublings) - 1;
  // Chains that find no thread wait for one that is through.
  const int rounds = (chains + threads - 1) / threads;
  const double all = seconds * steps * static_cast<double>(iterations) / chains * rounds;
  return fmt::format(
      "{} takes {}: {} iterations of {} chain{} {} {} on {} thread{}",
      job.settings.method == sampling::Method::metropolis ? "a value and gradient" : "a leapfrog step",
      format_seconds(seconds), format_count(static_cast<double>(iterations)), chains, chains > 1 ? "s" : "",
      fixed ? "take about" : fmt::format("of up to {:.0f} steps take at most", steps), format_seconds(all),
      threads, threads > 1 ? "s" : "");
}

// Says how long it will take, where anything is left, and begins the progress.
void announce(const ChainJob& job, std::vector<ChainRun>& runs,
              const std::vector<std::unique_ptr<PosteriorDensity>>& densities, int threads, Shared& shared) {
  std::int64_t left = 0;
  for (ChainRun& run : runs) {
    left += std::max<std::int64_t>(0, run.wanted() - run.iterations());
    shared.iterations += std::min(run.wanted(), run.iterations());
  }
  if (left == 0) return;
  const auto chains = static_cast<int>(runs.size());
  if (job.tell) {
    const double seconds = seconds_an_evaluation(*densities[0], runs[0].record().state.position);
    job.tell(expectation(job, seconds, left, chains, std::min(threads, chains)));
  }
  if (!job.label.empty())
    shared.progress = std::make_unique<Progress>(job.label, static_cast<double>(runs[0].wanted() * chains),
                                                 "iterations", static_cast<double>(shared.iterations.load()));
}

// A chain that another rank has sampled.
ChainRecord value_of_other(const ChainJob& job, int chain) {
  std::optional<ChainRecord> record = read_chain(chain_file(job.folder, chain), job.posterior, *job.data);
  if (record) return std::move(*record);
  throw Error(ErrorCode::not_found, "the chain of another rank is not there",
              chain_file(job.folder, chain).string(),
              "all ranks need the same --out, on a shared file system");
}

}  // namespace

double seconds_an_evaluation(PosteriorDensity& density, std::span<const double> position) {
  constexpr int least = 3, most = 200;
  constexpr double budget = 0.1;  // s, after which it is known well enough for a forecast
  std::vector<double> gradient(density.size()), seconds;
  density.evaluate(position, gradient);
  for (const Stopwatch all; seconds.size() < most && (seconds.size() < least || all.seconds() < budget);) {
    const Stopwatch watch;
    density.evaluate(position, gradient);
    seconds.push_back(watch.seconds());
  }
  return median(seconds);
}

std::vector<ChainRecord> sample_chains(const ChainJob& job, ThreadPool& pool) {
  Communicator& world = communicator();
  std::vector<std::unique_ptr<PosteriorDensity>> densities;
  std::vector<ChainRun> runs;
  Shared shared;
  {
    const Progress phase = Progress::phase("compiling " + job.posterior.model().settings().workload);
    for (int c = world.rank(); c < job.chains; c += world.size()) {
      densities.push_back(job.posterior.density(job.data, job.task, pool));
      std::optional<ChainRecord> before;
      if (!job.folder.empty()) before = read_chain(chain_file(job.folder, c), job.posterior, *job.data);
      runs.emplace_back(job, c, *densities.back(), std::move(before));
    }
  }
  announce(job, runs, densities, pool.threads(), shared);
  pool.parallel_for(static_cast<std::int64_t>(runs.size()),
                    [&](std::int64_t k, int) { runs[static_cast<std::size_t>(k)].run(shared); });
  if (world.any(shared.stopped)) throw Error(ErrorCode::interrupted, "in the middle of a chain");
  std::vector<ChainRecord> records;
  for (int c = 0; c < job.chains; ++c)
    if (c % world.size() == world.rank())
      records.push_back(std::move(runs[static_cast<std::size_t>(c / world.size())].record()));
    else
      records.push_back(value_of_other(job, c));
  return records;
}

std::vector<ChainRecord> sample_by_laplace(const ChainJob& job, std::string& told) {
  ThreadPool alone(1);
  const Stopwatch watch;
  const auto density = job.posterior.density(job.data, job.task, alone);
  // L-BFGS takes some hundreds for networks of thousands of parameters; ten times that is a stop for all.
  constexpr int most_evaluations = 5000;
  sampling::Mode mode = sampling::find_mode(*density, job.posterior.start(*job.data, 0), most_evaluations);
  Progress progress = Progress::passing(job.label, static_cast<double>(density->size()), "columns");
  const sampling::LaplaceApproximation normal(
      *density, std::move(mode), [&](std::size_t columns) { progress.update(static_cast<double>(columns)); });
  told =
      fmt::format("mode after {} evaluations, slope {:.2g}; log evidence {:.6g} nat{}",
                  normal.mode().evaluations, normal.mode().slope, normal.log_evidence(),
                  normal.ridge() > 0 ? fmt::format("; {:.2g} added to the curvature", normal.ridge()) : "");
  std::vector<ChainRecord> records(static_cast<std::size_t>(job.chains));
  const double seconds = watch.seconds();
  std::uint64_t index = 0;
  for (ChainRecord& record : records) {
    const Stopwatch drawing;
    for (std::int64_t d = 0; d < job.draws; ++d) {
      const std::vector<double> position = normal.draw(job.settings.seed, index++);
      const auto predictions = density->predict(position);
      add_draw(record, position, predictions, density->log_likelihoods(position));
      record.iterations.push_back(
          {.log_density = density->value(position), .acceptance = 1, .evaluations = 1});
    }
    record.iterations.front().evaluations += normal.evaluations() / job.chains;
    record.warm_up_seconds = seconds / job.chains, record.draw_seconds = drawing.seconds();
    record.state.position = normal.mode().position;
    record.state.inverse_mass.assign(density->size(), 1);
    record.state.gathered_mean.assign(density->size(), 0);
    record.state.gathered_squares.assign(density->size(), 0);
    record.state.iteration = job.draws;
  }
  return records;
}

}  // namespace superstep::run
