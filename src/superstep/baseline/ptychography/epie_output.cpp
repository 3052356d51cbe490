#include "superstep/baseline/ptychography/epie_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace superstep::baseline {
namespace {

constexpr int most_rows = 20;  // of the table

std::vector<std::string> row_of(const EpieResult& result) {
  std::vector<std::string> row{std::to_string(result.scan), std::to_string(result.points),
                               std::to_string(result.errors.size()), format_seconds(result.seconds),
                               fmt::format("{:.5f}", result.errors.back())};
  if (result.comparison) {
    row.push_back(fmt::format("{:.4f}", result.comparison->phase_rms));
    row.push_back(fmt::format("{:.4f}", result.comparison->amplitude_rms));
    row.push_back(fmt::format("{:.2f}", result.quality->resolution));
  } else {
    row.insert(row.end(), {"-", "-", "-"});
  }
  return row;
}

}  // namespace

EpieOutput::EpieOutput(const std::filesystem::path& path, const PtychoFile& file, int scans, int passes,
                       bool stitched)
    : height_(file.height()), width_(file.width()), passes_(passes) {
  if (path.empty()) return;
  writer_ = std::make_unique<data::Hdf5Writer>(path);
  writer_->create("object_amp", ElementType::f32, {scans, height_, width_});
  writer_->create("object_phase", ElementType::f32, {scans, height_, width_});
  writer_->create("probe", ElementType::f32, {scans, file.window(), file.window(), 2});
  writer_->create("fourier_error", ElementType::f64, {scans, passes});
  writer_->create("passes_done", ElementType::i32, {scans});
  writer_->set_attribute("object_phase", "unit", std::string("rad"));
  if (stitched) {
    writer_->create("stitched_amp", ElementType::f32, {scans, height_, width_});
    writer_->create("stitched_phase", ElementType::f32, {scans, height_, width_});
    writer_->set_attribute("stitched_phase", "unit", std::string("rad"));
  }
  writer_->write("pixel_size", Tensor::scalar(file.pixel()));
}

void EpieOutput::write_object(const std::string& name, int scan,
                              const std::vector<std::complex<float>>& object) {
  Tensor amplitude(ElementType::f32, {1, height_, width_}), phase(ElementType::f32, amplitude.shape());
  for (std::size_t i = 0; i < object.size(); ++i) {
    amplitude.as<float>()[i] = std::abs(object[i]);
    phase.as<float>()[i] = std::arg(object[i]);
  }
  writer_->write_rows(name + "_amp", scan, amplitude);
  writer_->write_rows(name + "_phase", scan, phase);
}

void EpieOutput::add(const EpieResult& result) {
  if (!writer_) return;
  // With the truth at hand, what no measurement can tell is written as the truth has it.
  write_object("object", result.scan, result.comparison ? result.comparison->aligned : result.object);
  if (result.start) write_object("stitched", result.scan, result.start->stitched.object);
  writer_->write_rows("probe", result.scan, 1, std::as_bytes(std::span(result.probe)));
  std::vector<double> errors = result.errors;
  errors.resize(static_cast<std::size_t>(passes_), std::numeric_limits<double>::quiet_NaN());
  writer_->write_rows("fourier_error", result.scan, 1, std::as_bytes(std::span(errors)));
  const auto done = static_cast<std::int32_t>(result.errors.size());
  writer_->write_rows("passes_done", result.scan, 1, std::as_bytes(std::span(&done, 1)));
}

void EpieOutput::close() {
  if (writer_) writer_->close();
}

void EpieSummary::Halves::add(const std::optional<HalvesAgreement>& agreement) {
  if (!agreement) return;
  ++scans;
  resolution += agreement->resolution;
  phase_squares += agreement->phase_rms * agreement->phase_rms;
}

void EpieSummary::Halves::append(std::vector<Metric>& metrics, const char* whose, double pixel) const {
  if (scans == 0) return;
  metrics.push_back({fmt::format("{}halves_resolution", whose), resolution / scans * pixel * 1e9, "nm"});
  metrics.push_back({fmt::format("{}halves_phase_rms", whose), std::sqrt(phase_squares / scans), "rad"});
}

std::string EpieSummary::Halves::line(const char* what, double pixel) const {
  if (scans == 0) return {};
  return fmt::format(
      "every second point against the others, {}: {:.1f} nm resolved (half a bit), "
      "phases {:.4f} rad apart (rms)\n",
      what, resolution / scans * pixel * 1e9, std::sqrt(phase_squares / scans));
}

void EpieSummary::add(const EpieResult& result) {
  if (scans_ < most_rows) table_.add_row(row_of(result));
  ++scans_;
  seconds_ += result.seconds;
  points_ += result.points;
  updates_ += result.points * static_cast<double>(result.errors.size());
  fourier_ += result.errors.back();
  halves_.add(result.halves);
  network_halves_.add(result.network_halves);
  if (result.start && !start_) {
    start_ = result.start;
    warm_ = result.quality;
  }
  if (!result.comparison) return;
  ++compared_;
  resolution_ += result.quality->resolution;
  const ObjectComparison& comparison = *result.comparison;
  pixels_ += comparison.pixels;
  phase_squares_ += comparison.pixels * comparison.phase_rms * comparison.phase_rms;
  amplitude_squares_ += comparison.pixels * comparison.amplitude_rms * comparison.amplitude_rms;
  worst_phase_ = std::max(worst_phase_, comparison.phase_rms);
}

Report EpieSummary::report(double wall_seconds, double pixel) const {
  std::vector<Metric> metrics{{"time_per_scan", seconds_ / scans_, "s"},
                              {"elapsed", wall_seconds, "s"},
                              {"throughput", points_ / wall_seconds, "samples/s"},
                              {"pattern_updates", updates_ / wall_seconds, "1/s"},
                              {"fourier_error", fourier_ / scans_, ""}};
  if (compared_ > 0) {
    metrics.push_back({"phase_error_rms", std::sqrt(phase_squares_ / pixels_), "rad"});
    metrics.push_back({"phase_error_worst_scan", worst_phase_, "rad"});
    metrics.push_back({"amplitude_error_rms", std::sqrt(amplitude_squares_ / pixels_), ""});
    metrics.push_back({"resolution", resolution_ / compared_ * pixel * 1e9, "nm"});
  }
  halves_.append(metrics, "", pixel);
  network_halves_.append(metrics, "network_", pixel);
  const std::string text = table_.to_string() + halves_.line("reconstructed", pixel) +
                           network_halves_.line("of the network's answers", pixel);
  if (!start_) return {metrics, text};
  if (start_->network) {
    metrics.push_back({"network_phase_error_rms", start_->network->phase_rms, "rad"});
    metrics.push_back({"network_resolution", start_->network->resolution * pixel * 1e9, "nm"});
    metrics.push_back({"from_nothing_phase_error_rms", start_->from_nothing->phase_rms, "rad"});
  }
  return {metrics, text + "\nthe first scan:\n" + table_of(*start_, warm_, pixel)};
}

}  // namespace superstep::baseline
