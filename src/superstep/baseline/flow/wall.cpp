#include "superstep/baseline/flow/wall.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/in_file.h"
#include "superstep/baseline/regression.h"
#include "superstep/baseline/trees.h"
#include "superstep/file/check.h"
#include "superstep/file/csv.h"
#include "superstep/file/form.h"
#include "superstep/file/source/array_file.h"
#include "superstep/page/page.h"
#include "superstep/physics/flow/wall_flow.h"
#include "superstep/physics/flow/wall_generator.h"
#include "superstep/physics/flow/wall_law.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

using data::wall_features;

struct Points {
  Tensor features;            // [n, 16 or more]; the first 16 are the point's own
  std::vector<double> truth;  // may be empty
  std::int64_t count() const { return features.shape()[0]; }
  std::span<const float> at(std::int64_t k) const {
    const auto width = static_cast<std::size_t>(features.shape()[1]);
    return features.as<float>().subspan(static_cast<std::size_t>(k) * width, wall_features);
  }
};

Points read_hdf5(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  Points points{file.read("features", ElementType::f32, any), {}};
  if (points.features.shape()[1] < wall_features)
    throw Error(
        ErrorCode::bad_file,
        fmt::format("has {} features per point, {} are needed", points.features.shape()[1], wall_features),
        path.string() + ": data set 'features'");
  if (!file.contains("tau")) return points;
  const std::int64_t one[] = {points.count()};
  const Tensor tau = file.read("tau", ElementType::f64, one);
  points.truth.assign(tau.as<double>().begin(), tau.as<double>().end());
  return points;
}

Points read_table(const std::filesystem::path& path) {
  data::CsvReader table(path);
  std::vector<std::size_t> columns;
  for (const std::string& name : data::wall_feature_names()) columns.push_back(table.column(name));
  const bool labelled = table.has_column("tau");
  std::vector<float> values;
  Points points;
  while (table.next()) {
    for (std::size_t column : columns) values.push_back(static_cast<float>(table.number(column)));
    if (labelled) points.truth.push_back(table.number(table.column("tau")));
  }
  points.features =
      Tensor::from<float>({static_cast<std::int64_t>(values.size() / wall_features), wall_features}, values);
  return points;
}

Points read_points(const std::filesystem::path& path) {
  const bool is_table = data::is_text(path, {".csv", ".tsv"});
  Points points = is_table ? read_table(path) : read_hdf5(path);
  if (points.count() == 0) throw Error(ErrorCode::bad_file, "has no points", path.string());
  data::require_finite(points.features, path.string());
  return points;
}

struct Agreement {
  double pearson = 0, mse = 0, relative = 0;  // relative: root of mse over the deviation of the truth
};

Agreement compare(const std::vector<double>& found, const std::vector<double>& truth) {
  const auto n = static_cast<double>(found.size());
  double mean_a = 0, mean_b = 0, aa = 0, bb = 0, ab = 0, square = 0;
  for (std::size_t k = 0; k < found.size(); ++k) mean_a += found[k] / n, mean_b += truth[k] / n;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double a = found[k] - mean_a, b = truth[k] - mean_b;
    aa += a * a, bb += b * b, ab += a * b;
    square += (found[k] - truth[k]) * (found[k] - truth[k]) / n;
  }
  const double norm = std::sqrt(aa * bb);
  return {norm > 0 ? ab / norm : 0, square, bb > 0 ? std::sqrt(square * n / bb) : 0};
}

struct Estimates {
  std::vector<double> stress;
  std::vector<std::int64_t> points;  // which ones; empty for all
  std::int64_t unsettled = 0;        // near separation the wall equation has no single answer
  double seconds = 0;
};

void write_table(const std::filesystem::path& path, const Estimates& found) {
  data::CsvWriter table(path, {"point", "tau"});
  for (std::size_t k = 0; k < found.stress.size(); ++k)
    table.cell(found.points.empty() ? static_cast<std::int64_t>(k) : found.points[k])
        .cell(found.stress[k])
        .end_row();
  table.close();
}

void write_page(const std::filesystem::path& path, const Report& report, const std::vector<double>& found,
                const std::vector<double>& truth) {
  page::Page page("Wall shear stress from one point");
  page.begin_row().preformatted(report.text);
  if (!truth.empty()) {
    page::Series points{.label = "points", .style = page::Series::Style::points}, line{.label = "equal"};
    const std::size_t shown = std::min<std::size_t>(truth.size(), 3000);
    points.x.assign(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(shown));
    points.y.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown));
    const auto [low, high] = std::minmax_element(points.x.begin(), points.x.end());
    line.x = line.y = {*low, *high};
    page::Plot plot{.title = "Stress", .x_label = "true", .y_label = "found"};
    plot.series = {points, line};
    page.plot(plot);
  }
  page.end_row().write(path);
}

Estimates estimate(const Points& points, const Request& request, const Options& options) {
  static const std::string methods[] = {"profile", "equilibrium", "gradients", "trees"};
  const auto method = static_cast<WallMethod>(options.choice("method", methods));
  const double height = options.number("height", 1e-9, 1e9);
  const double viscosity = 1 / options.number("reynolds", 1e-9, 1e12);
  Estimates found{.stress = std::vector<double>(static_cast<std::size_t>(points.count()))};
  std::atomic<std::int64_t> unsettled{0};
  const Stopwatch watch;
  request.pool->parallel_for(points.count(), [&](std::int64_t k, int) {
    data::throw_if_interrupted();
    double& stress = found.stress[static_cast<std::size_t>(k)];
    try {
      stress = wall_stress(method, points.at(k), height, viscosity);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::diverged)
        throw in_file(error, fmt::format("{}: point {}", request.input.string(), k));
      stress = wall_stress(WallMethod::profile, points.at(k), height, viscosity);
      ++unsettled;
    }
  });
  found.unsettled = unsettled;
  found.seconds = watch.seconds();
  return found;
}

TreeFeatures rows_of(const Points& points, const std::vector<std::int64_t>& which) {
  TreeFeatures x(static_cast<Eigen::Index>(which.size()), points.features.shape()[1]);
  for (std::size_t row = 0; row < which.size(); ++row)
    std::copy_n(points.features.as<float>().begin() + which[row] * x.cols(), x.cols(),
                x.data() + static_cast<Eigen::Index>(row) * x.cols());
  return x;
}

// Boosted trees, grown on four fifths of the points. Returns the held-out fifth alone, which is what can be
// judged, as points with their estimates.
Estimates grow(Points& points, const Request& request, const Options& options) {
  if (points.truth.empty())
    throw Error(ErrorCode::bad_file, "has no stresses (tau) to learn from", request.input.string());
  std::vector<std::int64_t> known, held_out;
  for (std::int64_t k = 0; k < points.count(); ++k)
    (is_held_out(fmt::format("point {}", k), 5) ? held_out : known).push_back(k);
  if (known.empty() || held_out.empty())
    throw Error(ErrorCode::bad_file, "too few points to fit and to hold some out", request.input.string());
  const auto truth_of = [&](const std::vector<std::int64_t>& which) {
    std::vector<double> values;
    for (const std::int64_t k : which) values.push_back(points.truth[static_cast<std::size_t>(k)]);
    return values;
  };
  const TreeSettings settings{.trees = static_cast<int>(options.integer("trees", 1, 100000)),
                              .threads = request.pool->threads()};
  const Stopwatch watch;
  const TreeFeatures others = rows_of(points, held_out);
  Estimates found{fit_trees(rows_of(points, known), truth_of(known), others, settings), held_out, 0,
                  watch.seconds()};
  points.truth = truth_of(held_out);
  const std::span<const float> kept(others.data(), static_cast<std::size_t>(others.size()));
  points.features =
      Tensor::from<float>({others.rows(), others.cols()}, std::vector<float>(kept.begin(), kept.end()));
  return found;
}

Report summarize(const Points& points, const Estimates& found, const std::string& method) {
  const double rate = static_cast<double>(points.count()) / found.seconds;
  Report report;
  report.metrics = {{"throughput", rate, "samples/s"},
                    {"unsettled", static_cast<double>(found.unsettled), ""}};
  TextTable table({"method", "points", "Pearson", "MSE", "error / deviation", "unsettled", "points/s"});
  std::vector<std::string> row{method,
                               format_count(static_cast<double>(points.count())),
                               "-",
                               "-",
                               "-",
                               fmt::format("{}", found.unsettled),
                               fmt::format("{:.0f}", rate)};
  if (!points.truth.empty()) {
    const Agreement agreement = compare(found.stress, points.truth);
    report.metrics.push_back({"pearson", agreement.pearson, ""});
    report.metrics.push_back({"mse", agreement.mse, ""});
    row[2] = fmt::format("{:.4f}", agreement.pearson);
    row[3] = fmt::format("{:.3e}", agreement.mse);
    row[4] = fmt::format("{:.3f}", agreement.relative);
  }
  table.add_row(row);
  report.text = table.to_string();
  return report;
}

Report run(const Request& request, const Options& options) {
  Points points = read_points(request.input);
  const bool trees = options.text("method") == "trees";
  const Estimates found = trees ? grow(points, request, options) : estimate(points, request, options);
  const Report report = summarize(points, found, options.text("method"));
  if (!request.output.empty()) write_table(request.output, found);
  if (!request.picture.empty()) write_page(request.picture, report, found.stress, points.truth);
  return report;
}

}  // namespace

double wall_stress(WallMethod method, std::span<const float> f, double height, double viscosity) {
  const double speed = std::hypot(f[0], f[2]), density = f[15];
  if (!(speed > 0)) return 0;
  const double c = f[0] / speed, s = f[2] / speed;
  if (method == WallMethod::profile) {
    const double friction = data::friction_velocity(speed, height, viscosity);
    return density * friction * friction * c;
  }
  data::WallColumn column{.height = height, .speed = speed, .density = density, .viscosity = viscosity};
  if (method == WallMethod::gradients) {
    column.pressure_gradient = f[12] * c + f[14] * s;
    column.acceleration = f[3] * c * c + (f[5] + f[9]) * c * s + f[11] * s * s;  // along the flow
  }
  return data::solve_wall_column(column).shear_stress * c;
}

Entry wall_models() {
  return {
      "wallmodel",
      "wall stress from one point: the law of the wall inverted, the wall equation solved, or boosted trees",
      {{"method", "profile",
        "profile, equilibrium (wall equation), gradients (with pressure and acceleration), trees (boosted; "
        "judged on a fifth of the points)"},
       {"trees", "400", "for method=trees"},
       {"height", "0.1", "of the points above the wall"},
       {"reynolds", "15000", "1 / kinematic viscosity, in the units of the features"}},
      run};
}

}  // namespace superstep::baseline
