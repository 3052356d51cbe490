#include "superstep/physics/xray/bragg_frames.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "superstep/file/hdf5/hdf5.h"
#include "superstep/physics/imaging/components.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/physics/xray/bragg_generator.h"

namespace superstep::data {
namespace {

constexpr double visible = 0.5;  // counts: a peak is drawn as far out as it is brighter than this
constexpr double largest_count = 65535;
constexpr double rocking_reach = 4;  // standard deviations: what is left of a peak there is 1/3000 of it

// The pixel whose middle is nearest to a position inside the frame.
std::size_t pixel_of(const BraggPeak& peak, int width, int height) {
  const int column = std::clamp(static_cast<int>(std::lround(peak.column)), 0, width - 1);
  const int row = std::clamp(static_cast<int>(std::lround(peak.row)), 0, height - 1);
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(width) + static_cast<std::size_t>(column);
}

struct Component {
  std::uint16_t peaks = 0, highest = 0;
  std::size_t brightest = 0;  // pixel
};

// What the components are that the peaks lie in: fills `peaks` and `deviation` of the table.
void describe_peaks(BraggFrame& frame, int width, int height) {
  std::vector<std::int32_t> labels(frame.counts.size()), stack;
  const int count = label_components<std::uint16_t>(frame.counts, width, height, labels, stack);
  std::vector<Component> components(static_cast<std::size_t>(count) + 1);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    Component& component = components[static_cast<std::size_t>(labels[i])];
    if (frame.counts[i] > component.highest) component = {0, frame.counts[i], i};
  }
  const auto component_of = [&](const BraggTableRow& row) -> Component& {
    return components[static_cast<std::size_t>(labels[pixel_of(row.peak, width, height)])];
  };
  for (const BraggTableRow& row : frame.table) ++component_of(row).peaks;
  for (BraggTableRow& row : frame.table) {
    const Component& component = component_of(row);
    if (&component == components.data()) continue;  // the pixel at its centre is zero
    const auto w = static_cast<std::size_t>(width);
    const double column = static_cast<double>(component.brightest % w),
                 line = static_cast<double>(component.brightest / w);
    row.peaks = component.peaks;
    row.deviation = static_cast<float>(std::hypot(column - row.peak.column, line - row.peak.row));
  }
}

// Background, and the places and shapes of peaks, have streams of their own, apart from those of other modes.
RandomStream turning_stream(std::uint64_t seed, std::uint64_t index) {
  return bragg_stream(seed, index, BraggPurpose::position);
}

struct TableColumn {
  const char* name;
  ElementType type;
  const char* unit;
  const char* meaning;
  double (*value)(const BraggTableRow& row, std::uint64_t frame);
};

constexpr TableColumn table_columns[] = {
    {"peak_row", ElementType::f32, "px", "row of the true center",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.row; }},
    {"peak_col", ElementType::f32, "px", "column of the true center",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.column; }},
    {"peak_fidx", ElementType::u32, "", "the frame it is in",
     [](const BraggTableRow&, std::uint64_t f) { return double(f); }},
    {"npeaks", ElementType::u16, "", "peaks in the same connected component; 0: below the threshold",
     [](const BraggTableRow& r, std::uint64_t) { return double(r.peaks); }},
    {"deviations", ElementType::f32, "px",
     "from the center to the brightest pixel of its component; -1: there is none",
     [](const BraggTableRow& r, std::uint64_t) { return double(r.deviation); }},
    {"amplitude", ElementType::f32, "counts", "expected counts above background at the center",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.amplitude; }},
    {"sigma1", ElementType::f32, "px", "width along the first axis",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.sigma1; }},
    {"sigma2", ElementType::f32, "px", "width along the second axis",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.sigma2; }},
    {"angle", ElementType::f32, "rad", "of the first axis to the columns",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.angle; }},
    {"eta", ElementType::f32, "", "share of the Lorentzian",
     [](const BraggTableRow& r, std::uint64_t) { return r.peak.eta; }}};

void create_data_sets(Hdf5Writer& file, const BraggFrameSettings& settings, std::int64_t frames) {
  file.create("frames", ElementType::u16, {frames, settings.height, settings.width},
              {.chunk_rows = 1, .deflate = 1});
  file.set_attribute("frames", "unit", "counts");
  file.create("frame_background", ElementType::f32, {frames});
  file.set_attribute("frame_background", "unit", "counts");
  for (const TableColumn& column : table_columns) {
    file.create(column.name, column.type, {0}, {.extendable = true, .chunk_rows = 8192});
    file.set_attribute(column.name, "meaning", column.meaning);
    if (*column.unit) file.set_attribute(column.name, "unit", column.unit);
  }
}

void write_frame(Hdf5Writer& file, const BraggFrame& frame, std::uint64_t index, std::int64_t& peaks) {
  const auto row = static_cast<std::int64_t>(index);
  file.write_rows("frames", row, 1, std::as_bytes(std::span(frame.counts)));
  file.write_rows("frame_background", row, Tensor::full(ElementType::f32, {1}, frame.background));
  const auto count = static_cast<std::int64_t>(frame.table.size());
  for (const TableColumn& column : table_columns) {
    Tensor values(column.type, {count});
    for (std::int64_t i = 0; i < count; ++i)
      values.set(i, column.value(frame.table[static_cast<std::size_t>(i)], index));
    file.write_rows(column.name, peaks, values);
  }
  peaks += count;
}

}  // namespace

BraggFrameGenerator::BraggFrameGenerator(const BraggFrameSettings& settings)
    : settings_(settings),
      fields_{{"frames", ElementType::u16, {settings.height, settings.width}, "counts", "a detector frame"}} {
}

// Peaks of this frame alone.
void BraggFrameGenerator::add_peaks(RandomStream& random, BraggFrame& frame, BraggImage& expected) const {
  for (std::uint64_t count = random.poisson(settings_.peaks_per_frame); count-- > 0;) {
    BraggPeak peak = draw_bragg_peak(settings_.ranges, random);
    peak.background = frame.background;
    peak.column = random.uniform(-0.5, settings_.width - 0.5);
    peak.row = random.uniform(-0.5, settings_.height - 0.5);
    expected.add(peak, settings_.detector.integrate, visible);
    frame.table.push_back({peak});
  }
}

std::vector<BraggReflection> BraggFrameGenerator::reflections(std::uint64_t seed, std::uint64_t index) const {
  std::vector<BraggReflection> born;
  if (!(settings_.rocking > 0)) return born;
  RandomStream random = turning_stream(seed, index);
  for (std::uint64_t count = random.poisson(settings_.peaks_per_frame); count-- > 0;) {
    BraggReflection reflection{.peak = draw_bragg_peak(settings_.ranges, random)};
    reflection.peak.column = random.uniform(-0.5, settings_.width - 0.5);
    reflection.peak.row = random.uniform(-0.5, settings_.height - 0.5);
    reflection.frame = static_cast<double>(index) + random.uniform(-0.5, 0.5);
    born.push_back(reflection);
  }
  return born;
}

// What is left in this frame of the reflections of its neighbors.
void BraggFrameGenerator::add_turning(std::uint64_t seed, std::uint64_t index, BraggFrame& frame,
                                      BraggImage& expected) const {
  const auto reach = static_cast<std::uint64_t>(std::ceil(rocking_reach * settings_.rocking));
  for (std::uint64_t near = index - std::min(index, reach); near <= index + reach; ++near) {
    for (BraggReflection reflection : reflections(seed, near)) {
      BraggPeak& peak = reflection.peak;
      const double off = (static_cast<double>(index) - reflection.frame) / settings_.rocking;
      peak.amplitude *= std::exp(-0.5 * off * off);
      peak.background = frame.background;
      if (peak.amplitude < visible) continue;
      expected.add(peak, settings_.detector.integrate, visible);
      frame.table.push_back({peak});
    }
  }
}

std::vector<std::uint8_t> BraggFrameGenerator::dead_pixels(std::uint64_t seed) const {
  std::vector<std::uint8_t> dead;
  if (!(settings_.dead > 0)) return dead;
  // A stream that no frame has: the pixels are the detector's.
  RandomStream random = bragg_stream(seed, ~std::uint64_t{0}, BraggPurpose::neighbor);
  dead.resize(static_cast<std::size_t>(settings_.width) * static_cast<std::size_t>(settings_.height));
  for (std::uint8_t& pixel : dead) pixel = random.uniform() < settings_.dead;
  return dead;
}

BraggFrame BraggFrameGenerator::frame(std::uint64_t seed, std::uint64_t index) const {
  const int width = settings_.width, height = settings_.height;
  BraggFrame frame;
  RandomStream random = bragg_stream(seed, index, BraggPurpose::peak);
  frame.background = random.uniform(settings_.ranges.background_low, settings_.ranges.background_high);
  BraggImage expected(0, 0, width, height);
  expected.fill(frame.background);
  if (settings_.rocking > 0)
    add_turning(seed, index, frame, expected);
  else
    add_peaks(random, frame, expected);
  expected.blur(settings_.detector.point_spread);
  RandomStream counts = bragg_stream(seed, index, BraggPurpose::counts);
  RandomStream noise = bragg_stream(seed, index, BraggPurpose::read_noise);
  frame.counts.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; ++column) {
      const double reading = detect(expected.at(column, row), settings_.detector, counts, noise);
      frame.counts.push_back(static_cast<std::uint16_t>(std::clamp(std::round(reading), 0.0, largest_count)));
    }
  const std::vector<std::uint8_t> dead = dead_pixels(seed);
  for (std::size_t i = 0; i < dead.size(); ++i)
    if (dead[i]) frame.counts[i] = 0;
  describe_peaks(frame, width, height);
  return frame;
}

void BraggFrameGenerator::sample(std::uint64_t seed, std::uint64_t index,
                                 std::span<std::byte* const> out) const {
  const BraggFrame made = frame(seed, index);
  std::memcpy(out[0], made.counts.data(), made.counts.size() * sizeof made.counts[0]);
}

nlohmann::json BraggFrameGenerator::parameters() const {
  nlohmann::json parameters{{"mode", "frames"},
                            {"height", settings_.height},
                            {"width", settings_.width},
                            {"peaks_per_frame", settings_.peaks_per_frame},
                            {"ranges", to_json(settings_.ranges)},
                            {"detector", to_json(settings_.detector)}};
  if (settings_.rocking > 0) parameters["rocking"] = settings_.rocking;
  if (settings_.dead > 0) parameters["dead"] = settings_.dead;
  return parameters;
}

void BraggFrameGenerator::write_turning(Hdf5Writer& file, const WriteRequest& request) const {
  std::vector<float> row, column, frame, amplitude;
  for (std::uint64_t index = 0; index < request.samples; ++index)
    for (const BraggReflection& each : reflections(request.seed, index)) {
      row.push_back(static_cast<float>(each.peak.row));
      column.push_back(static_cast<float>(each.peak.column));
      frame.push_back(static_cast<float>(each.frame));
      amplitude.push_back(static_cast<float>(each.peak.amplitude));
    }
  const auto put = [&](const char* name, const std::vector<float>& values, const char* unit,
                       const char* meaning) {
    file.write(name, Tensor::from<float>({static_cast<std::int64_t>(values.size())}, values));
    file.set_attribute(name, "unit", unit);
    file.set_attribute(name, "meaning", meaning);
  };
  put("spot_row", row, "px", "row of the true center of a reflection");
  put("spot_col", column, "px", "column of the true center of a reflection");
  put("spot_frame", frame, "frames", "where its intensity over the frames is highest");
  put("spot_amplitude", amplitude, "counts", "expected counts above background at its center, in that place");
}

void BraggFrameGenerator::write(const WriteRequest& request) const {
  Hdf5Writer file(request.path);
  write_provenance(file, *this, request.seed);
  create_data_sets(file, settings_, static_cast<std::int64_t>(request.samples));
  if (settings_.rocking > 0) write_turning(file, request);
  if (const std::vector<std::uint8_t> dead = dead_pixels(request.seed); !dead.empty())
    file.write("mask", Tensor::from<std::uint8_t>({settings_.height, settings_.width}, dead), {.deflate = 1});
  Progress progress("generating braggnn", static_cast<double>(request.samples), "frames");
  std::int64_t peaks = 0;
  stream_blocks(
      request.samples, 2 * static_cast<std::uint64_t>(request.pool->threads()), progress,
      [&](std::uint64_t first, std::uint64_t count) {
        std::vector<BraggFrame> block(count);
        request.pool->parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t item, int) {
          throw_if_interrupted();
          block[static_cast<std::size_t>(item)] =
              frame(request.seed, first + static_cast<std::uint64_t>(item));
        });
        return block;
      },
      [&](std::uint64_t first, const std::vector<BraggFrame>& block) {
        for (std::size_t i = 0; i < block.size(); ++i) write_frame(file, block[i], first + i, peaks);
      });
  file.close();
}

}  // namespace superstep::data
