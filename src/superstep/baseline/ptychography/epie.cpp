#include "superstep/baseline/ptychography/epie.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/ptycho_diffraction.h"

namespace superstep::baseline {

using data::multiply_conjugate;
using data::squared;

struct Epie::Worker {
  data::ComplexField wave;  // the exit wave, then its transform, then the change of the exit wave
  data::ComplexField probe_change;
  double error = 0;
};

Epie::~Epie() = default;

namespace {

void require(bool holds, std::string what) {
  if (!holds) throw Error(ErrorCode::invalid_argument, std::move(what), "ptychography data");
}

void require_consistent(const PtychoData& data, const data::ComplexField& probe) {
  const auto pixels = static_cast<std::size_t>(data.n) * static_cast<std::size_t>(data.n);
  require(data.n >= 2 && data.n % 2 == 0,
          fmt::format("patterns of {} px a side: an even number is needed", data.n));
  require(probe.size() == pixels,
          fmt::format("a probe of {} pixels for patterns of {}", probe.size(), pixels));
  require(!data.positions.empty(), "no points");
  require(data.modulus.size() == data.positions.size() * pixels, "patterns and positions differ in number");
  require(data.dead.empty() || data.dead.size() == pixels,
          "the dead pixels have another shape than the patterns");
  for (const data::Position at : data.positions)
    require(at.y >= 0 && at.x >= 0 && at.y + data.n <= data.height && at.x + data.n <= data.width,
            fmt::format("the window at ({}, {}) leaves the object of {} x {}", at.y, at.x, data.height,
                        data.width));
}

}  // namespace

Epie::Epie(const PtychoData& data, data::ComplexField probe, const EpieSettings& settings,
           std::vector<std::complex<float>> object)
    : data_(data), settings_(settings), object_(std::move(object)), probe_(std::move(probe)) {
  require_consistent(data_, probe_);
  require(settings.regularization > 0 && settings.regularization <= 1,
          "the regularization must be in (0, 1]");
  const auto pixels = static_cast<std::size_t>(data.height) * static_cast<std::size_t>(data.width);
  if (object_.empty()) object_.assign(pixels, 1.0f);
  require(object_.size() == pixels,
          fmt::format("an object of {} pixels to start from, where {} x {} are needed", object_.size(),
                      data.height, data.width));
  for (const auto& value : object_)
    require(std::isfinite(squared(value)), "the object to start from is not finite");
  for (const float value : data_.modulus) total_ += double{value} * value;
  require(total_ > 0, "no pattern has a count");
  dark_modulus_ = static_cast<float>(std::sqrt(std::max(0.0, (data.threshold - 1) / 2)));
  weigh_object_updates();
}

void Epie::weigh_object_updates() {
  float largest = 0;
  for (const auto& value : probe_) largest = std::max(largest, squared(value));
  const auto a = static_cast<float>(settings_.regularization),
             step = static_cast<float>(settings_.object_step);
  object_weight_.resize(probe_.size());
  for (std::size_t i = 0; i < probe_.size(); ++i)
    object_weight_[i] = step / ((1 - a) * squared(probe_[i]) + a * largest);
}

double Epie::pass(ThreadPool& pool) {
  RandomStream random(settings_.seed, static_cast<std::uint64_t>(passes_));
  const bool refine = passes_ >= settings_.probe_from;
  double error = 0;
  for (const auto& group : disjoint_groups(data_.positions, data_.n, random))
    error += run_group(group, pool, refine);
  ++passes_;
  return error / total_;
}

double Epie::run_group(const std::vector<int>& group, ThreadPool& pool, bool refine) {
  if (workers_.size() < group.size()) workers_.resize(group.size());
  pool.parallel_for(static_cast<std::int64_t>(group.size()), [&](std::int64_t item, int) {
    Worker& worker = workers_[static_cast<std::size_t>(item)];
    const int point = group[static_cast<std::size_t>(item)];
    const data::Position at = data_.positions[static_cast<std::size_t>(point)];
    worker.wave.resize(probe_.size());
    data::exit_wave<float>(probe_, data_.n, object_, data_.width, at, worker.wave);
    worker.error = project(point, worker);
    put_back(at, worker, refine);
  });
  double error = 0;
  for (std::size_t i = 0; i < group.size(); ++i) error += workers_[i].error;
  if (refine) change_probe(group.size());
  return error;
}

// Turns the exit wave into the change that gives its far field the measured modulus.
double Epie::project(int point, Worker& worker) const {
  auto& fft = data::thread_fft<float>({data_.n, data_.n});
  const float unit = 1.0f / static_cast<float>(data_.n), scale = unit * unit;
  const float* modulus = &data_.modulus[static_cast<std::size_t>(point) * probe_.size()];
  fft.forward(worker.wave);
  double error = 0;
  for (std::size_t i = 0; i < worker.wave.size(); ++i) {
    const float found = std::sqrt(squared(worker.wave[i])) * unit;
    // A count written as 0 stands for anything below the threshold.
    const float target = modulus[i] > 0 ? modulus[i] : std::min(found, dark_modulus_);
    const bool measured = data_.dead.empty() || !data_.dead[i];
    const float difference = measured ? target - found : 0.0f;
    error += double{difference} * difference;
    worker.wave[i] *= found > 0 ? scale * difference / found : 0.0f;
  }
  fft.inverse(worker.wave);
  return error;
}

float Epie::brightest_object(data::Position at) const {
  float largest = 0;
  for (int y = at.y; y < at.y + data_.n; ++y) {
    const auto* row = &object_[static_cast<std::size_t>(y) * static_cast<std::size_t>(data_.width)];
    for (int x = at.x; x < at.x + data_.n; ++x) largest = std::max(largest, squared(row[x]));
  }
  return largest;
}

namespace {

// A function of its own, on plain pointers: inside the loop over rows gcc 12 makes it five times slower.
[[gnu::noinline]] void put_back_row(std::size_t count, const std::complex<float>* change,
                                    const std::complex<float>* probe, const float* object_weight,
                                    float probe_weight, std::complex<float>* object,
                                    std::complex<float>* probe_change) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::complex<float> step = change[i];
    probe_change[i] = probe_weight * multiply_conjugate(object[i], step);
    object[i] += object_weight[i] * multiply_conjugate(probe[i], step);
  }
}

}  // namespace

// O += conj(P) change / ..., and notes conj(O) change / max |O|^2 for the probe, O as it was before.
void Epie::put_back(data::Position at, Worker& worker, bool refine) {
  const auto side = static_cast<std::size_t>(data_.n);
  const float probe_weight = refine ? static_cast<float>(settings_.probe_step) / brightest_object(at) : 0.0f;
  worker.probe_change.resize(probe_.size());
  for (std::size_t y = 0; y < side; ++y) {
    auto* object = &object_[(static_cast<std::size_t>(at.y) + y) * static_cast<std::size_t>(data_.width) +
                            static_cast<std::size_t>(at.x)];
    const std::size_t row = y * side;
    put_back_row(side, &worker.wave[row], &probe_[row], &object_weight_[row], probe_weight, object,
                 &worker.probe_change[row]);
  }
}

// The mean of the group's updates: each of them alone would already move the probe all the way.
void Epie::change_probe(std::size_t group_size) {
  const float share = 1.0f / static_cast<float>(group_size);
  for (std::size_t worker = 0; worker < group_size; ++worker)
    for (std::size_t i = 0; i < probe_.size(); ++i) probe_[i] += share * workers_[worker].probe_change[i];
  weigh_object_updates();
}

}  // namespace superstep::baseline
