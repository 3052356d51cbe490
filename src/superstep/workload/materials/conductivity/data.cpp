// Sections of cathodes: micrographs of two phases with the conductivity of the conductor and the effective
// one, generated or out of files; quality, and what an estimate from the area and a coarser solve reach.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "superstep/baseline/regression.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/image_stack.h"
#include "superstep/file/source/array_file.h"
#include "superstep/physics/materials/conductivity.h"
#include "superstep/physics/stream_blocks.h"
#include "superstep/workload/materials/conductivity/conductivity.h"
#include "superstep/workload/metrics.h"
#include "superstep/workload/table.h"

namespace superstep::workload {
namespace {

namespace fs = std::filesystem;

// 1,216 for training, 304 that are not trained on (Le 2024: 152 and 152).
constexpr std::int64_t published_samples = 1520;
constexpr double published_share = 0.8;

std::span<const std::uint8_t> section_at(const Tensor& images, std::int64_t index) {
  const auto pixels = static_cast<std::size_t>(images.element_count() / images.shape()[0]);
  return images.as<std::uint8_t>().subspan(static_cast<std::size_t>(index) * pixels, pixels);
}

int side_of(const Tensor& images) { return static_cast<int>(images.shape()[1]); }

// --- files: HDF5 as the generator writes it, or a stack of pages (TIFF, npy) with a table beside it

// 0 and one other value, which conducts, as in the images of `superstep baseline conductivity`; of two other
// values the larger one conducts.
Tensor phases_of(const Tensor& stack, const std::string& where) {
  Tensor phases(ElementType::u8, stack.shape());
  const auto conducts = phases.as<std::uint8_t>();
  const std::int64_t pixels = stack.element_count() / stack.shape()[0];
  double low = stack.at(0), high = low;
  for (std::int64_t i = 0; i < stack.element_count(); ++i) {
    low = std::min(low, stack.at(i));
    high = std::max(high, stack.at(i));
  }
  for (std::int64_t i = 0; i < stack.element_count(); ++i) {
    const double value = stack.at(i);
    if (value != low && value != high)
      throw Error(ErrorCode::bad_file,
                  fmt::format("image {} is not binary: pixel {} is {}, others are {} and {}", i / pixels,
                              i % pixels, value, low, high),
                  where, "separate the phases first, by a threshold or by a network");
    conducts[static_cast<std::size_t>(i)] = low == high ? value != 0 : value == high;
  }
  return phases;
}

void require_sections(const Tensor& stack, int side, const std::string& where) {
  if (stack.shape()[1] == side && stack.shape()[2] == side) return;
  throw Error(ErrorCode::bad_file,
              fmt::format("has images of {}x{} pixels, the model takes {}x{}", stack.shape()[2],
                          stack.shape()[1], side, side),
              where, fmt::format("--set side={}, of square images", stack.shape()[1]));
}

Tensor column_of(const fs::path& path, const std::string& name, std::int64_t count) {
  data::CsvReader table(path);
  const std::size_t column = table.column(name);
  std::vector<float> values;
  while (table.next()) values.push_back(static_cast<float>(table.number(column)));
  if (static_cast<std::int64_t>(values.size()) != count)
    throw Error(ErrorCode::bad_file,
                fmt::format("has {} rows for the {} images beside it", values.size(), count), path.string(),
                "one row an image, in their order: is the stack cut short?");
  Tensor tensor(ElementType::f32, {count});
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

bool is_stack(const fs::path& path) {
  const data::FileForm form = data::form_of(path);
  return form == data::FileForm::tiff || form == data::FileForm::npy;
}

// The columns `sigma` and, where it is there or wanted, `sigma_eff`.
void add_conductivities(Fields& fields, const TaskSettings& settings) {
  const std::int64_t count = fields.at("image").shape()[0];
  if (!is_stack(settings.data)) {
    const data::ArrayFile file(settings.data);
    const std::int64_t one_each[] = {count};
    fields.emplace("sigma", file.read("sigma", ElementType::f32, one_each));
    if (settings.labels_required || file.contains("sigma_eff"))
      fields.emplace("sigma_eff", file.read("sigma_eff", ElementType::f32, one_each));
    return;
  }
  fs::path table = settings.data;
  table.replace_extension(".csv");
  if (!fs::exists(table))
    throw Error(ErrorCode::not_found, "the images have no table of conductivities beside them",
                table.string(), "columns sigma and sigma_eff, one row an image");
  fields.emplace("sigma", column_of(table, "sigma", count));
  if (settings.labels_required || data::CsvReader(table).has_column("sigma_eff"))
    fields.emplace("sigma_eff", column_of(table, "sigma_eff", count));
}

// sigma above zero, sigma_eff from zero (no conducting path) to sigma.
void require_conductivities(const Fields& fields, const std::string& where) {
  const Tensor& sigma = fields.at("sigma");
  const auto refuse = [&](std::int64_t k, const char* name, double value, const char* expected) {
    throw Error(ErrorCode::bad_file, fmt::format("image {}: {} is {}", k, name, value), where, expected);
  };
  for (std::int64_t k = 0; k < sigma.element_count(); ++k) {
    const double own = sigma.at(k);
    if (!std::isfinite(own) || own <= 0) refuse(k, "sigma", own, "a conductivity is above zero");
    if (!fields.contains("sigma_eff")) continue;
    constexpr double rounding = 1 + 1e-5;  // of both in f32
    const double effective = fields.at("sigma_eff").at(k);
    if (!(effective >= 0 && effective <= own * rounding))
      refuse(k, "sigma_eff", effective, "it is 0 where no path conducts, and at most sigma");
  }
}

Fields read_cathodes(const TaskSettings& settings, int side) {
  const std::string where = settings.data.string();
  const Tensor stack = data::read_image_stack(settings.data, "image");
  require_sections(stack, side, where);
  Fields fields{{"image", phases_of(stack, where)}};
  add_conductivities(fields, settings);
  require_conductivities(fields, where);
  return fields;
}

// --- what is filled into batches

void fill_section(const Tensor& images, std::int64_t index, std::span<float> row) {
  const auto section = section_at(images, index);
  if (section.size() != row.size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("has {} pixels, the model takes {}", section.size(), row.size()), "field image",
                "give --set side=");
  std::ranges::copy(section, row.begin());
}

// Mirrored from left to right and from top to bottom, which changes no current between the sides (a quarter
// turn would); and with the conductor of another training sample, to which sigma_eff is proportional.
void flip_and_scale(const Fields& fields, std::int64_t training, RandomStream& random,
                    std::span<Tensor> batch, std::size_t row) {
  const auto pixels = batch[0].as<float>();
  const std::size_t area = pixels.size() / static_cast<std::size_t>(batch[0].shape()[0]);
  const auto side = static_cast<std::size_t>(batch[0].shape()[3]);
  const auto section = pixels.subspan(row * area, area);
  const bool sideways = random.below(2) == 1, upside_down = random.below(2) == 1;
  if (upside_down) std::ranges::reverse(section);
  if (sideways != upside_down)
    for (std::size_t y = 0; y < area; y += side) std::ranges::reverse(section.subspan(y, side));
  float &sigma = batch[1].as<float>()[row], &effective = batch[2].as<float>()[row];
  const auto other = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(training)));
  const auto drawn = static_cast<float>(fields.at("sigma").at(other));
  effective *= drawn / sigma;
  sigma = drawn;
}

// --- quality, of the ratio sigma_eff / sigma

double relative_error(const std::vector<double>& truth, const std::vector<double>& found) {
  double sum = 0, conducting = 0;
  for (std::size_t k = 0; k < truth.size(); ++k) {
    if (truth[k] <= 0) continue;  // no path: there is nothing to be relative to
    sum += std::abs(found[k] - truth[k]) / truth[k];
    ++conducting;
  }
  return conducting > 0 ? sum / conducting : 0;
}

std::vector<Metric> quality_of_ratios(const Fields& fields, std::span<const std::int64_t> indices,
                                      std::span<const Tensor> outputs) {
  const std::vector<double> truth = true_ratios(fields, indices);
  const std::vector<double> found = predicted_ratios(fields, indices, outputs[0]);
  const baseline::RegressionScore score = baseline::score(truth, found);
  return {quality_metric("r2", score.r2), quality_metric("mape", relative_error(truth, found)),
          quality_metric("mae", score.mae)};
}

// The effective medium of a two-dimensional mixture of equals, by the insulator's share of the area.
double effective_medium(std::span<const std::uint8_t> section) {
  const auto insulating = static_cast<double>(std::ranges::count(section, 0));
  return std::max(0.0, 1 - 2 * insulating / static_cast<double>(section.size()));
}

// Solved on blocks of 2x2 pixels, each with its mean conductivity.
double coarse_solution(std::span<const std::uint8_t> section, int side) {
  const int half = side / 2;
  std::vector<double> sigma(static_cast<std::size_t>(half) * static_cast<std::size_t>(half), 0.0);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x)
      sigma[static_cast<std::size_t>(y / 2 * half + x / 2)] +=
          0.25 * section[static_cast<std::size_t>(y * side + x)];
  return data::effective_conductivity(sigma, half, half).effective;
}

References area_and_coarse_solution(const TableSamples& samples) {
  const Tensor& images = samples.fields.at("image");
  const int side = side_of(images);
  const std::vector<double> truth = true_ratios(samples.fields, samples.indices);
  std::vector<double> medium(truth.size()), coarse(truth.size());
  samples.pool.parallel_for(static_cast<std::int64_t>(truth.size()), [&](std::int64_t item, int) {
    data::throw_if_interrupted();
    const auto k = static_cast<std::size_t>(item);
    const auto section = section_at(images, samples.indices[k]);
    medium[k] = effective_medium(section);
    coarse[k] = coarse_solution(section, side);
  });
  const auto r2 = [&](const std::vector<double>& found) { return baseline::score(truth, found).r2; };
  return {.floor = Reference{"the effective medium of the area alone", r2(medium)},
          .conventional = Reference{"the solve at half the resolution", r2(coarse)},
          .limit = {},
          .target = {}};
}

TableSpec spec_of_cathodes(int side) {
  constexpr std::int64_t published_side = 256, most = 4 * published_samples;
  const std::int64_t as_many_pixels = published_samples * published_side * published_side / side / side;
  return {.generator = "conductivity",
          .settings = {fmt::format("size={}", side)},
          .default_samples = std::clamp(as_many_pixels, published_samples, most),
          .training_share = published_share,
          .group = {},
          .inputs = {{.field = "image", .make = fill_section}, {.field = "sigma"}},
          .targets = {{.field = "sigma_eff"}},
          .more = {},
          .augment = flip_and_scale,
          .augments_by_others = true,
          .quality = quality_of_ratios,
          .present = present_cathodes,
          .references = area_and_coarse_solution,
          .reference_seconds = 2,
          .reference_fields = {}};
}

}  // namespace

std::vector<double> true_ratios(const Fields& fields, std::span<const std::int64_t> indices) {
  std::vector<double> ratios;
  for (const std::int64_t k : indices)
    ratios.push_back(fields.at("sigma_eff").at(k) / fields.at("sigma").at(k));
  return ratios;
}

std::vector<double> predicted_ratios(const Fields& fields, std::span<const std::int64_t> indices,
                                     const Tensor& sigma_eff) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < indices.size(); ++i)
    ratios.push_back(sigma_eff.at(static_cast<std::int64_t>(i)) / fields.at("sigma").at(indices[i]));
  return ratios;
}

std::unique_ptr<Task> open_cathodes(const TaskSettings& settings, const Options& model) {
  const int side = cathode_side(model);
  if (settings.data.empty()) return open_table_task(spec_of_cathodes(side), settings);
  return open_table_task(spec_of_cathodes(side), read_cathodes(settings, side), settings);
}

}  // namespace superstep::workload
