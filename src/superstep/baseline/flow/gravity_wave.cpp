#include "superstep/baseline/flow/gravity_wave.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/file/check.h"
#include "superstep/file/source/array_file.h"
#include "superstep/page/page.h"
#include "superstep/physics/flow/gravity_wave_generator.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

constexpr double ridge_strength =
    1e-4;  // of a column's variance; chosen: enough for levels that move together
constexpr double mPa = 1e-3;

std::vector<double> layers_of(const Tensor& field, std::int64_t index) {
  const std::int64_t levels = field.shape()[1];
  std::vector<double> layers(static_cast<std::size_t>(levels));
  for (std::int64_t k = 0; k < levels; ++k)
    layers[static_cast<std::size_t>(k)] = field.at(index * levels + k);
  return layers;
}

// Everything that the network is given, of some columns of air.
Eigen::MatrixXd rows_of_air(const AirColumns& columns, std::span<const std::int64_t> indices) {
  const Tensor* const fields[] = {&columns.u, &columns.v, &columns.temperature, &columns.source};
  Eigen::Index width = 0;
  for (const Tensor* field : fields) width += field->shape()[1];
  Eigen::MatrixXd rows(static_cast<Eigen::Index>(indices.size()), width);
  for (Eigen::Index i = 0; i < rows.rows(); ++i) {
    Eigen::Index at = 0;
    for (const Tensor* field : fields)
      for (std::int64_t k = 0; k < field->shape()[1]; ++k)
        rows(i, at++) = field->at(indices[static_cast<std::size_t>(i)] * field->shape()[1] + k);
  }
  return rows;
}

double r2_of(const Eigen::VectorXd& truth, const Eigen::VectorXd& found) {
  const double deviation = (truth.array() - truth.mean()).matrix().squaredNorm();
  return deviation > 0 ? 1 - (truth - found).squaredNorm() / deviation
                       : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::int64_t> every(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// --- files

struct ColumnFile {
  Tensor u, v, temperature, source;
  DragRows drag;  // no rows where the file has none
  AirColumns air() const { return {u, v, temperature, source}; }
  std::int64_t count() const { return u.shape()[0]; }
};

Tensor finite_field(const data::ArrayFile& file, const char* name, std::span<const std::int64_t> shape) {
  Tensor tensor = file.read(name, ElementType::f32, shape);
  data::require_finite(tensor, file.path().string() + ": data set '" + name + "'");
  return tensor;
}

ColumnFile read_columns(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  ColumnFile columns{.u = finite_field(file, "u", any), .v = {}, .temperature = {}, .source = {}, .drag = {}};
  const std::int64_t layers[] = {columns.count(), columns.u.shape()[1]}, two[] = {columns.count(), 2};
  if (columns.count() == 0) throw Error(ErrorCode::bad_file, "has no columns of air", path.string());
  columns.v = finite_field(file, "v", layers);
  columns.temperature = finite_field(file, "temperature", layers);
  columns.source = finite_field(file, "source", two);
  if (file.contains("drag_u") && file.contains("drag_v"))
    columns.drag = rows_of_drag(finite_field(file, "drag_u", layers), finite_field(file, "drag_v", layers),
                                every(columns.count()));
  return columns;
}

// Of all columns by the waves, or of the last fifth by a line through the others.
struct Found {
  DragRows drag;
  std::vector<std::int64_t> indices;
  double seconds = 0;
};

Found find_drag(const ColumnFile& file, const Request& request, const Options& options) {
  static const std::string methods[] = {"waves", "line"};
  if (options.choice("method", methods) == 0) {
    const data::WaveSpectrum spectrum{.azimuths = static_cast<int>(options.integer("azimuths", 1, 360)),
                                      .speeds = static_cast<int>(options.integer("speeds", 1, 1000))};
    Found found{.drag = {}, .indices = every(file.count())};
    const Stopwatch watch;
    try {
      found.drag = drag_of_waves(file.air(), found.indices, spectrum, *request.pool);
    } catch (const Error& error) {
      throw in_file(error, request.input.string());
    }
    found.seconds = watch.seconds();
    return found;
  }
  const std::int64_t training = file.count() * 4 / 5;
  if (file.drag.rows() == 0 || training < 2)
    throw Error(ErrorCode::bad_file, "has no drag (drag_u, drag_v) to fit a line to, or too few columns",
                request.input.string(), "method=waves needs none");
  Found found{.drag = {}, .indices = every(file.count())};
  found.indices.erase(found.indices.begin(), found.indices.begin() + training);
  const Stopwatch watch;
  found.drag = drag_of_a_line(file.air(), file.drag, training, found.indices);
  found.seconds = watch.seconds();
  return found;
}

void write_drag(const std::filesystem::path& path, const DragRows& drag) {
  const std::int64_t levels = drag.cols() / 2;
  data::Hdf5Writer file(path);
  for (const auto& [name, first] : {std::pair("drag_u", std::int64_t{0}), std::pair("drag_v", levels)}) {
    Tensor field(ElementType::f32, {drag.rows(), levels});
    for (Eigen::Index i = 0; i < drag.rows(); ++i)
      for (std::int64_t k = 0; k < levels; ++k) field.set(i * levels + k, drag(i, first + k));
    file.write(name, field);
  }
  file.close();
}

page::Series by_height(std::string label, const std::vector<double>& values, double depth_km) {
  page::Series series{.label = std::move(label)};
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (!std::isfinite(values[k])) continue;
    series.x.push_back(values[k]);
    series.y.push_back((static_cast<double>(k) + 0.5) * depth_km);
  }
  return series;
}

std::vector<double> root_mean_squares(const DragRows& drag) {
  std::vector<double> sizes;
  for (Eigen::Index k = 0; k < drag.cols() / 2; ++k)
    sizes.push_back(std::sqrt(drag.col(k).cast<double>().squaredNorm() / static_cast<double>(drag.rows())));
  return sizes;
}

void write_drag_page(const std::filesystem::path& path, const Report& report, const DragRows& truth,
                     const DragRows& found) {
  const double depth_km = data::WaveGrid{.levels = static_cast<int>(found.cols() / 2)}.depth() / 1e3;
  page::Page page("Drag of gravity waves");
  page.begin_row().preformatted(report.text);
  page::Plot sizes{.title = "Drag on u", .x_label = "root mean square, m/s a day", .y_label = "height, km"};
  sizes.series.push_back(by_height("found", root_mean_squares(found), depth_km));
  if (truth.rows() > 0) sizes.series.push_back(by_height("true", root_mean_squares(truth), depth_km));
  page.plot(sizes);
  if (truth.rows() > 0) {
    const DragScore score = score_drag(truth, found);
    page::Plot skill{.title = "R2 by layer", .x_label = "R2", .y_label = "height, km"};
    skill.series = {by_height("u", score.r2_u, depth_km), by_height("v", score.r2_v, depth_km)};
    page.plot(skill);
  }
  page.end_row().write(path);
}

Report summarize_drag(const DragRows& truth, const Found& found, const Request& request,
                      const Options& options) {
  const auto count = static_cast<double>(found.indices.size());
  const double rate = count / found.seconds;
  const bool waves = options.text("method") == "waves";
  Report report;
  report.metrics = {{"throughput", rate, "samples/s"}};
  TextTable table(
      {"method", "columns", "waves", "R2", "RMSE (m/s/day)", "us per column and thread", "columns/s"});
  std::vector<std::string> row{options.text("method"),
                               format_count(count),
                               waves ? options.text("azimuths") + " x " + options.text("speeds") : "-",
                               "-",
                               "-",
                               fmt::format("{:.2f}", 1e6 * found.seconds * request.pool->threads() / count),
                               fmt::format("{:.0f}", rate)};
  if (truth.rows() > 0) {
    const DragScore score = score_drag(truth, found.drag);
    report.metrics.push_back({"r2", score.r2, ""});
    report.metrics.push_back({"rmse", score.rmse, "m/s/day"});
    row[3] = fmt::format("{:.4f}", score.r2);
    row[4] = fmt::format("{:.3g}", score.rmse);
  }
  table.add_row(row);
  report.text = table.to_string();
  return report;
}

Report run_gravity_waves(const Request& request, const Options& options) {
  const ColumnFile file = read_columns(request.input);
  const Found found = find_drag(file, request, options);
  DragRows truth;
  if (file.drag.rows() > 0) truth = file.drag.bottomRows(found.drag.rows());
  const Report report = summarize_drag(truth, found, request, options);
  if (!request.output.empty()) write_drag(request.output, found.drag);
  if (!request.picture.empty()) write_drag_page(request.picture, report, truth, found.drag);
  return report;
}

}  // namespace

DragRows rows_of_drag(const Tensor& u, const Tensor& v, std::span<const std::int64_t> indices) {
  const std::int64_t levels = u.shape()[1];
  DragRows rows(static_cast<Eigen::Index>(indices.size()), 2 * levels);
  for (Eigen::Index i = 0; i < rows.rows(); ++i)
    for (std::int64_t k = 0; k < levels; ++k) {
      const std::int64_t at = indices[static_cast<std::size_t>(i)] * levels + k;
      rows(i, k) = static_cast<float>(u.at(at));
      rows(i, levels + k) = static_cast<float>(v.at(at));
    }
  return rows;
}

DragScore score_drag(const DragRows& truth, const DragRows& found) {
  DragScore score;
  double squares = 0;
  int judged = 0;
  const Eigen::Index levels = truth.cols() / 2;
  for (Eigen::Index k = 0; k < truth.cols(); ++k) {
    const Eigen::VectorXd own = truth.col(k).cast<double>(), other = found.col(k).cast<double>();
    const double r2 = r2_of(own, other);
    (k < levels ? score.r2_u : score.r2_v).push_back(r2);
    if (!std::isfinite(r2)) continue;
    score.r2 += r2;
    squares += (own - other).squaredNorm() / static_cast<double>(truth.rows());
    ++judged;
  }
  if (judged == 0) return score;
  score.r2 /= judged;
  score.rmse = std::sqrt(squares / judged);
  return score;
}

DragRows drag_of_waves(const AirColumns& columns, std::span<const std::int64_t> indices,
                       const data::WaveSpectrum& spectrum, ThreadPool& pool) {
  const data::WaveGrid grid{.levels = columns.levels()};
  DragRows rows(static_cast<Eigen::Index>(indices.size()), 2 * grid.levels);
  pool.parallel_for(rows.rows(), [&](std::int64_t i, int) {
    data::throw_if_interrupted();
    const std::int64_t index = indices[static_cast<std::size_t>(i)];
    const std::vector<double> u = layers_of(columns.u, index), v = layers_of(columns.v, index),
                              temperature = layers_of(columns.temperature, index);
    const data::WaveSource source{.flux = columns.source.at(2 * index) * mPa,
                                  .width = columns.source.at(2 * index + 1)};
    const data::WaveDrag drag = data::wave_drag(grid, spectrum, source, {u, v, temperature});
    for (int k = 0; k < grid.levels; ++k) {
      rows(i, k) = static_cast<float>(data::seconds_a_day * drag.u[static_cast<std::size_t>(k)]);
      rows(i, grid.levels + k) =
          static_cast<float>(data::seconds_a_day * drag.v[static_cast<std::size_t>(k)]);
    }
  });
  return rows;
}

DragRows drag_of_a_line(const AirColumns& columns, const DragRows& known, std::int64_t training,
                        std::span<const std::int64_t> indices) {
  Eigen::MatrixXd x = rows_of_air(columns, every(training)), others = rows_of_air(columns, indices);
  const Eigen::RowVectorXd middle = x.colwise().mean();
  x.rowwise() -= middle;
  others.rowwise() -= middle;
  Eigen::MatrixXd y = known.topRows(training).cast<double>();
  const Eigen::RowVectorXd mean = y.colwise().mean();
  y.rowwise() -= mean;
  Eigen::MatrixXd normal = x.transpose() * x;
  // A column that does not vary gets no weight.
  normal.diagonal() =
      normal.diagonal().unaryExpr([](double own) { return own > 0 ? own * (1 + ridge_strength) : 1; });
  const Eigen::MatrixXd weights = normal.ldlt().solve(x.transpose() * y);
  Eigen::MatrixXd found = others * weights;
  found.rowwise() += mean;
  return found.cast<float>();
}

Entry gravity_wave_schemes() {
  return {
      "gravity-wave-drag",
      "the scheme of saturating waves itself, with as many waves as wanted, or a line through the profiles",
      {{"method", "waves", "waves: the scheme; line: ridge regression, judged on the last fifth"},
       {"azimuths", "8", "directions of the waves"},
       {"speeds", "24", "phase speeds in every direction"}},
      run_gravity_waves};
}

}  // namespace superstep::baseline
