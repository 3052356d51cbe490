#include "superstep/physics/xray/bragg_generator.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "superstep/physics/xray/bragg_frames.h"

namespace superstep::data {
namespace {

Field number(const char* name, const char* unit, const char* meaning) {
  return {name, ElementType::f32, {}, unit, meaning};
}

std::vector<Field> patch_fields(const BraggPatchSettings& settings) {
  const int size = settings.stored_size();
  std::vector<Field> fields{
      {"patch", ElementType::f32, {size, size}, "counts", "detector counts around one Bragg peak"},
      {"ploc",
       ElementType::f32,
       {2},
       "",
       "(column, row) of the peak's center from the center of the first pixel, divided by the patch size"},
      number("amplitude", "counts", "expected counts above background at the center"),
      number("sigma1", "px", "width along the first axis of the peak"),
      number("sigma2", "px", "width along the second axis of the peak"),
      number("angle", "rad", "of the first axis to the columns"),
      number("eta", "", "share of the Lorentzian in the pseudo-Voigt profile"),
      number("background", "counts", "expected background a pixel"),
      number("center_x", "px", "column of the center"),
      number("center_y", "px", "row of the center")};
  if (settings.overlap > 0) {
    fields.push_back(number("neighbor_amplitude", "counts", "of the overlapping peak; 0: there is none"));
    fields.push_back(number("neighbor_x", "px", "column of the overlapping peak's center"));
    fields.push_back(number("neighbor_y", "px", "row of the overlapping peak's center"));
  }
  return fields;
}

void store(std::byte* out, double value) { *reinterpret_cast<float*>(out) = static_cast<float>(value); }

std::vector<OptionSpec> options() {
  return {
      {"mode", "patches", "patches: one peak a sample; frames: whole detector frames with tables of peaks"},
      {"patch_size", "11", "px, odd, 9 to 23 (patches)"},
      {"margin", "0", "px kept around a patch so that training can shift the crop; 1 suffices (patches)"},
      {"offset", "1.5", "px the center may lie from the middle pixel, each way (patches)"},
      {"overlap", "0", "share of patches with a second peak; 0.02 is realistic (patches)"},
      {"frame_height", "2048", "px (frames)"},
      {"frame_width", "2048", "px (frames)"},
      {"peaks_per_frame", "54", "mean number of peaks (frames)"},
      {"rocking", "0",
       "frames, width (standard deviation) over which a turning sample shows a peak (frames)"},
      {"dead", "0", "share of pixels that read 0 in all frames, told in `mask` (frames)"},
      {"amplitude_low", "100", "counts, lowest amplitude (log-uniform)"},
      {"amplitude_high", "5000", "counts, highest amplitude"},
      {"sigma_low", "0.8", "px, smallest width of the first axis"},
      {"sigma_high", "2.0", "px, largest width of the first axis"},
      {"ratio_low", "0.7", "smallest ratio of the widths"},
      {"ratio_high", "1.4", "largest ratio of the widths"},
      {"background_low", "0.5", "counts a pixel"},
      {"background_high", "5", "counts a pixel"},
      {"pixel_integration", "no", "integrate over each pixel by 3x3 Gauss points"},
      {"point_spread", "0", "px, standard deviation of the detector's blur; 0.3 is realistic"},
      {"read_noise", "0", "counts, standard deviation; 1 is realistic"},
      {"saturation", "0", "counts at which a pixel saturates; 16384 is realistic, 0: none"},
      {"threshold", "auto", "counts below are set to zero; auto: 0 for patches, 20 for frames"}};
}

void require_ordered(double low, double high, const char* what) {
  if (low > high)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is larger than {}", low, high),
                fmt::format("options {}_low and {}_high", what, what));
}

BraggRanges ranges_of(const Options& given) {
  BraggRanges ranges;
  ranges.amplitude_low = given.number("amplitude_low", 1e-3, 1e9);
  ranges.amplitude_high = given.number("amplitude_high", 1e-3, 1e9);
  ranges.sigma_low = given.number("sigma_low", 0.1, 100);
  ranges.sigma_high = given.number("sigma_high", 0.1, 100);
  ranges.ratio_low = given.number("ratio_low", 0.01, 100);
  ranges.ratio_high = given.number("ratio_high", 0.01, 100);
  ranges.background_low = given.number("background_low", 0, 1e6);
  ranges.background_high = given.number("background_high", 0, 1e6);
  require_ordered(ranges.amplitude_low, ranges.amplitude_high, "amplitude");
  require_ordered(ranges.sigma_low, ranges.sigma_high, "sigma");
  require_ordered(ranges.ratio_low, ranges.ratio_high, "ratio");
  require_ordered(ranges.background_low, ranges.background_high, "background");
  return ranges;
}

BraggDetector detector_of(const Options& given, double automatic_threshold) {
  BraggDetector detector;
  detector.integrate = given.flag("pixel_integration");
  detector.point_spread = given.number("point_spread", 0, 10);
  detector.read_noise = given.number("read_noise", 0, 1e6);
  detector.saturation = given.number("saturation", 0, 1e9);
  detector.threshold =
      given.text("threshold") == "auto" ? automatic_threshold : given.number("threshold", 0, 1e9);
  return detector;
}

std::unique_ptr<Generator> make_patches(const Options& given) {
  BraggPatchSettings settings;
  require_patch_size(given.integer("patch_size", 1, 1000));
  settings.patch_size = static_cast<int>(given.integer("patch_size", 9, 23));
  settings.margin = static_cast<int>(given.integer("margin", 0, 16));
  settings.offset = given.number("offset", 0, settings.patch_size / 2);
  settings.overlap = given.number("overlap", 0, 1);
  settings.ranges = ranges_of(given);
  settings.detector = detector_of(given, 0);
  return std::make_unique<BraggPatchGenerator>(settings);
}

std::unique_ptr<Generator> make_frames(const Options& given) {
  BraggFrameSettings settings;
  settings.height = static_cast<int>(given.integer("frame_height", 16, 16384));
  settings.width = static_cast<int>(given.integer("frame_width", 16, 16384));
  settings.peaks_per_frame = given.number("peaks_per_frame", 0, 10000);
  settings.rocking = given.number("rocking", 0, 100);
  settings.dead = given.number("dead", 0, 0.5);
  settings.ranges = ranges_of(given);
  settings.detector = detector_of(given, 20);
  return std::make_unique<BraggFrameGenerator>(settings);
}

std::unique_ptr<Generator> make(const Options& given) {
  static const std::vector<std::string> modes{"patches", "frames"};
  return given.choice("mode", modes) == 0 ? make_patches(given) : make_frames(given);
}

}  // namespace

void require_patch_size(long long size) {
  if (size < 9 || size > 23 || size % 2 == 0)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a patch of {} px is not odd and between 9 and 23", size), "option patch_size");
}

BraggPatchGenerator::BraggPatchGenerator(const BraggPatchSettings& settings)
    : settings_(settings), fields_(patch_fields(settings)) {}

BraggPeak BraggPatchGenerator::peak(std::uint64_t seed, std::uint64_t index) const {
  RandomStream random = bragg_stream(seed, index, BraggPurpose::peak);
  BraggPeak peak = draw_bragg_peak(settings_.ranges, random);
  const double middle = settings_.stored_size() / 2;
  peak.column = middle + random.uniform(-settings_.offset, settings_.offset);
  peak.row = middle + random.uniform(-settings_.offset, settings_.offset);
  return peak;
}

// A spot of the same grain: the same shape, at most the same height, 3 px away or more, so that some of it
// is in the patch.
BraggPeak BraggPatchGenerator::neighbor(std::uint64_t seed, std::uint64_t index,
                                        const BraggPeak& peak) const {
  RandomStream random = bragg_stream(seed, index, BraggPurpose::neighbor);
  BraggPeak other = peak;
  const bool present = random.uniform() < settings_.overlap;
  other.amplitude = present ? peak.amplitude * random.uniform(0.1, 1) : 0;
  const double distance = random.uniform(3, settings_.patch_size / 2 + 1.5);
  const double direction = random.uniform(0, 2 * std::numbers::pi);
  other.column += distance * std::cos(direction);
  other.row += distance * std::sin(direction);
  return other;
}

void BraggPatchGenerator::sample(std::uint64_t seed, std::uint64_t index,
                                 std::span<std::byte* const> out) const {
  const int size = settings_.stored_size();
  const BraggPeak center = peak(seed, index), other = neighbor(seed, index, center);
  const BraggDetector& detector = settings_.detector;
  const int border = static_cast<int>(std::ceil(4 * detector.point_spread));  // the blur brings light in
  BraggImage expected(-border, -border, size + 2 * border, size + 2 * border);
  expected.fill(center.background);
  expected.add(center, detector.integrate);
  if (other.amplitude > 0) expected.add(other, detector.integrate);
  expected.blur(detector.point_spread);

  RandomStream counts = bragg_stream(seed, index, BraggPurpose::counts);
  RandomStream noise = bragg_stream(seed, index, BraggPurpose::read_noise);
  auto* patch = reinterpret_cast<float*>(out[0]);
  for (int row = 0; row < size; ++row)
    for (int column = 0; column < size; ++column)
      *patch++ = static_cast<float>(detect(expected.at(column, row), detector, counts, noise));

  auto* ploc = reinterpret_cast<float*>(out[1]);
  ploc[0] = static_cast<float>(center.column / size);
  ploc[1] = static_cast<float>(center.row / size);
  const double drawn[] = {center.amplitude,
                          center.sigma1,
                          center.sigma2,
                          center.angle,
                          center.eta,
                          center.background,
                          center.column,
                          center.row,
                          other.amplitude,
                          other.amplitude > 0 ? other.column : 0,
                          other.amplitude > 0 ? other.row : 0};
  for (std::size_t field = 2; field < out.size(); ++field) store(out[field], drawn[field - 2]);
}

nlohmann::json BraggPatchGenerator::parameters() const {
  return {{"mode", "patches"},
          {"patch_size", settings_.patch_size},
          {"margin", settings_.margin},
          {"offset", settings_.offset},
          {"overlap", settings_.overlap},
          {"ranges", to_json(settings_.ranges)},
          {"detector", to_json(settings_.detector)}};
}

nlohmann::json to_json(const BraggRanges& ranges) {
  return {{"amplitude", {ranges.amplitude_low, ranges.amplitude_high}},
          {"sigma", {ranges.sigma_low, ranges.sigma_high}},
          {"ratio", {ranges.ratio_low, ranges.ratio_high}},
          {"background", {ranges.background_low, ranges.background_high}}};
}

nlohmann::json to_json(const BraggDetector& detector) {
  return {{"pixel_integration", detector.integrate},
          {"point_spread", detector.point_spread},
          {"read_noise", detector.read_noise},
          {"saturation", detector.saturation},
          {"threshold", detector.threshold}};
}

GeneratorEntry bragg_generator_entry() {
  return {"braggnn", "Bragg peaks on an area detector, with their true centers", options(), make};
}

}  // namespace superstep::data
