// Diffraction patterns with the object under the probe: the first lines of a scan train, the last validate,
// as published.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "superstep/base/system/interrupt.h"
#include "superstep/baseline/ptychography/epie.h"
#include "superstep/baseline/ptychography/epie_compare.h"
#include "superstep/file/source/forms.h"
#include "superstep/physics/fft.h"
#include "superstep/physics/xray/ptycho.h"
#include "superstep/physics/xray/ptycho_probe.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"
#include "superstep/workload/xray/ptychonn/ptychonn.h"

namespace superstep::workload {
namespace {

using ObjectField = std::vector<std::complex<float>>;

constexpr std::int64_t stitched = 12;   // px along a side, in the middle of a window: what the probe lights
constexpr double object_pixel = 10e-9;  // m, the generators' own
constexpr int rpie_passes = 60;

// Photons range over seven orders of magnitude.
double log_counts(double counts) { return std::log1p(std::max(0.0, counts)); }

// Calls use(place in the window) for every pixel of its middle.
template <class Use>
void for_middle(std::int64_t window, Use use) {
  const std::int64_t first = (window - std::min(window, stitched)) / 2, last = window - first;
  for (std::int64_t y = first; y < last; ++y)
    for (std::int64_t x = first; x < last; ++x) use(y * window + x);
}

// The mean of |predicted(i, place) - field| over the middles of the samples.
template <class Predicted>
double error_in_the_middle(const Tensor& field, std::span<const std::int64_t> indices, Predicted predicted) {
  const std::int64_t window = field.shape()[2], plane = window * window;
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < indices.size(); ++i)
    for_middle(window, [&](std::int64_t place) {
      sum += std::abs(predicted(i, place) - field.at(indices[i] * plane + place));
      ++count;
    });
  return sum / std::max(1.0, count);
}

double middle_mae(const Tensor& field, std::span<const std::int64_t> indices, const Tensor& output) {
  const auto values = output.as<float>();
  const std::size_t plane = values.size() / std::max<std::size_t>(1, indices.size());
  return error_in_the_middle(field, indices, [&](std::size_t i, std::int64_t place) {
    return static_cast<double>(values[i * plane + static_cast<std::size_t>(place)]);
  });
}

std::vector<Metric> quality_of_phase(const Fields& fields, std::span<const std::int64_t> indices,
                                     std::span<const Tensor> outputs) {
  const Tensor &phase = fields.at("phase"), &found = outputs.back();
  return {quality_metric("phase_mae", middle_mae(phase, indices, found), "rad"),
          quality_metric("window_phase_mae", mean_absolute_error(phase, indices, found), "rad")};
}

std::vector<Metric> quality_of_both(const Fields& fields, std::span<const std::int64_t> indices,
                                    std::span<const Tensor> outputs) {
  std::vector<Metric> metrics = quality_of_phase(fields, indices, outputs);
  metrics.push_back(quality_metric("amplitude_mae", middle_mae(fields.at("amp"), indices, outputs[0])));
  return metrics;
}

double mean_phase(const TableSamples& samples) {
  const Tensor& phase = samples.fields.at("phase");
  const std::int64_t window = phase.shape()[2];
  double sum = 0, count = 0;
  for (std::int64_t i = 0; i < samples.training; ++i)
    for_middle(window, [&](std::int64_t place) { sum += phase.at(i * window * window + place), ++count; });
  return sum / count;
}

// Part of one scan, as a measurement, with the true object where its windows lie.
struct Scan {
  std::vector<std::int64_t> judged;  // samples
  std::int64_t first = 0;            // the measurement: this sample and those after it, of the same scan
  baseline::PtychoData data;
  ObjectField truth;
  double mean_counts = 0;
  std::int64_t points() const { return static_cast<std::int64_t>(data.positions.size()); }
};

// What is judged, and as many points before it: a reconstruction lives on overlaps.
void place_scan(Scan& scan, const TableSamples& samples) {
  const Tensor &position = samples.fields.at("position"), &number = samples.fields.at("scan");
  const auto [low_sample, high_sample] = std::ranges::minmax(scan.judged);
  const double own = number.at(low_sample);
  scan.first = std::max<std::int64_t>(0, 2 * low_sample - high_sample - 1);
  while (number.at(scan.first) != own) ++scan.first;
  data::Position low{1 << 30, 1 << 30};
  for (std::int64_t point = scan.first; point <= high_sample && number.at(point) == own; ++point) {
    scan.data.positions.push_back({static_cast<int>(std::lround(position.at(2 * point) / object_pixel)),
                                   static_cast<int>(std::lround(position.at(2 * point + 1) / object_pixel))});
    low = {std::min(low.y, scan.data.positions.back().y), std::min(low.x, scan.data.positions.back().x)};
  }
  for (data::Position& at : scan.data.positions) {
    at = {at.y - low.y, at.x - low.x};
    scan.data.height = std::max(scan.data.height, at.y + scan.data.n);
    scan.data.width = std::max(scan.data.width, at.x + scan.data.n);
  }
}

void read_patterns(Scan& scan, const TableSamples& samples) {
  const Tensor& diff = samples.fields.at("diff");
  const auto targets = data::fft_shift_targets({scan.data.n, scan.data.n});
  for (std::int64_t point = 0; point < scan.points(); ++point) {
    const auto counts = diff.as<float>().subspan(
        static_cast<std::size_t>(scan.first + point) * targets.size(), targets.size());
    for (const std::size_t target : targets) {
      scan.data.modulus.push_back(std::sqrt(std::max(0.0f, counts[target])));
      scan.mean_counts += std::max(0.0f, counts[target]) / static_cast<double>(scan.points());
    }
  }
}

void read_truth(Scan& scan, const TableSamples& samples) {
  const Tensor &amp = samples.fields.at("amp"), &phase = samples.fields.at("phase");
  const std::int64_t n = scan.data.n;
  scan.truth.assign(static_cast<std::size_t>(scan.data.height) * static_cast<std::size_t>(scan.data.width),
                    1);
  for (std::int64_t point = 0; point < scan.points(); ++point)
    for (std::int64_t p = 0; p < n * n; ++p) {
      const std::int64_t from = (scan.first + point) * n * n + p;
      const data::Position at = scan.data.positions[static_cast<std::size_t>(point)];
      scan.truth[static_cast<std::size_t>((at.y + p / n) * scan.data.width + at.x + p % n)] =
          std::polar(static_cast<float>(amp.at(from)), static_cast<float>(phase.at(from)));
    }
}

std::vector<Scan> scans_of(const TableSamples& samples) {
  std::map<double, Scan> scans;
  for (const std::int64_t index : samples.indices)
    scans[samples.fields.at("scan").at(index)].judged.push_back(index);
  std::vector<Scan> list;
  for (auto& [number, scan] : scans) {
    scan.data.n = static_cast<int>(samples.fields.at("diff").shape()[2]);
    scan.data.threshold = 3;
    place_scan(scan, samples);
    read_patterns(scan, samples);
    read_truth(scan, samples);
    list.push_back(std::move(scan));
  }
  return list;
}

// The probe of a scan as it was measured before; nothing where that is not known.
using ProbeOf = std::function<std::optional<data::ComplexField>(std::int64_t scan)>;

// The object of a scan from its patterns and probe, turned and scaled as the true one is: no measurement can
// tell.
ObjectField reconstructed(const Scan& scan, std::optional<data::ComplexField> known, ThreadPool& pool) {
  data::ComplexField probe =
      known ? std::move(*known) : data::gaussian_probe(scan.data.n, 75e-9 / object_pixel);
  if (!known) data::scale(probe, std::sqrt(scan.mean_counts));
  baseline::Epie epie(scan.data, probe, {.probe_step = 0.5, .regularization = 0.3});
  for (int pass = 0; pass < rpie_passes; ++pass) {
    if (interrupted()) throw Error(ErrorCode::interrupted, "the reconstruction was left");
    epie.pass(pool);
  }
  const std::vector<float> area = baseline::scanned_area(scan.data, epie.probe());
  return baseline::compare_objects(epie.object(), scan.truth, area, scan.data.height, scan.data.width)
      .aligned;
}

double reconstruction_error(const TableSamples& samples, const ProbeOf& probe) {
  const Tensor& phase = samples.fields.at("phase");
  double sum = 0;
  for (const Scan& scan : scans_of(samples)) {
    const auto number = static_cast<std::int64_t>(samples.fields.at("scan").at(scan.first));
    const ObjectField object = reconstructed(scan, probe(number), samples.pool);
    const std::int64_t n = scan.data.n, width = scan.data.width;
    const auto predicted = [&](std::size_t i, std::int64_t p) {
      const auto at = scan.data.positions[static_cast<std::size_t>(scan.judged[i] - scan.first)];
      const auto found = object[static_cast<std::size_t>((at.y + p / n) * width + at.x + p % n)];
      // The turn nearest to the true phase: an object is the same after a whole one.
      const double truth = phase.at(scan.judged[i] * n * n + p);
      return truth + std::remainder(std::arg(found) - truth, 2 * std::numbers::pi);
    };
    sum += static_cast<double>(scan.judged.size()) * error_in_the_middle(phase, scan.judged, predicted);
  }
  return sum / static_cast<double>(samples.indices.size());
}

References mean_and_reconstruction(const TableSamples& samples, const ProbeOf& probe) {
  const double mean = mean_phase(samples);
  const double floor = error_in_the_middle(samples.fields.at("phase"), samples.indices,
                                           [&](std::size_t, std::int64_t) { return mean; });
  return {.floor = Reference{"the mean phase", floor},
          .conventional = Reference{"iterative reconstruction (rPIE)", reconstruction_error(samples, probe)},
          .limit = {},
          .target = floor / 2};
}

ProbeOf probe_in_file(const std::filesystem::path& path) {
  return [path](std::int64_t scan) -> std::optional<data::ComplexField> {
    const std::unique_ptr<data::SampleSource> source = data::open_source(path);
    const std::size_t at = data::find_array(*source, "probe");
    if (at == source->arrays().size()) return std::nullopt;
    const data::SourceArray& array = source->arrays()[at];
    if (array.single || array.row.rank() != 3 || array.row[2] != 2)
      throw Error(ErrorCode::bad_file,
                  fmt::format("its shape is {}, not [any,any,any,2]", to_string(array.shape())),
                  source->place(at, 0));
    if (scan >= array.rows) return std::nullopt;
    const Tensor probe = data::read_rows(*source, at, std::span(&scan, 1)).converted(ElementType::f32);
    const auto* values = reinterpret_cast<const std::complex<float>*>(probe.bytes());
    return data::ComplexField(values, values + probe.element_count() / 2);
  };
}

ProbeOf probe_of_generator(const char* name, const std::vector<std::string>& settings, std::uint64_t seed) {
  const std::shared_ptr<const data::Generator> generator = make_generator(name, settings);
  return [generator, seed](std::int64_t scan) -> std::optional<data::ComplexField> {
    const auto* ptycho = dynamic_cast<const data::PtychoGenerator*>(generator.get());
    if (!ptycho) return std::nullopt;
    return ptycho->scan(seed, static_cast<std::uint64_t>(scan))->probe;
  };
}

// As published: nothing but what is too little to be a count is changed.
constexpr double fewest_counts = 3;
double plain_counts(double counts) { return counts < fewest_counts ? 0 : counts; }

const std::vector<std::string> count_scales = {"log", "plain"};

TableSpec spec_of(const char* generator, std::vector<std::string> settings, std::int64_t samples,
                  const TaskSettings& task, const Options& model) {
  const ProbeOf probe =
      task.data.empty() ? probe_of_generator(generator, settings, task.seed) : probe_in_file(task.data);
  return {.generator = generator,
          .settings = std::move(settings),
          .default_samples = samples,
          .group = "scan",
          .inputs = {{"diff", model.choice("counts", count_scales) == 0 ? log_counts : plain_counts}},
          .targets = {{"phase"}},
          .more = {},
          .quality = quality_of_phase,
          .present = present_ptychography,
          .references = [probe](const TableSamples& known) { return mean_and_reconstruction(known, probe); },
          .reference_seconds = 20,
          .reference_fields = {"amp", "position"}};
}

}  // namespace

std::unique_ptr<Task> open_ptychonn_64(const TaskSettings& settings, const Options& model) {
  TableSpec spec = spec_of("ptychonn-64", {"window=" + model.text("window"), "columns=64", "photons=1e6"},
                           2560, settings, model);
  spec.targets = {{"amp"}, {"phase"}};
  spec.quality = quality_of_both;
  return open_table_task(std::move(spec), settings);
}

std::unique_ptr<Task> open_ptychonn_128(const TaskSettings& settings, const Options& model) {
  const std::int64_t points = model.integer("points", 16, 1 << 20);
  return open_table_task(
      spec_of("ptychonn-128",
              {"window=" + model.text("window"), fmt::format("points={}", points), "photons=1e6"}, points,
              settings, model),
      settings);
}

}  // namespace superstep::workload
