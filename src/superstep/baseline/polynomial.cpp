#include "superstep/baseline/polynomial.h"

#include <fmt/format.h>

#include "superstep/base/error.h"
#include "superstep/base/stopwatch.h"
#include "superstep/base/text.h"
#include "superstep/baseline/regression.h"
#include "superstep/file/source/array_file.h"

namespace superstep::baseline {
namespace {

struct Points {
  Eigen::MatrixXd x;
  Eigen::VectorXd y;
};

Points read_points(const std::filesystem::path& path) {
  const data::ArrayFile file(path);
  const std::int64_t any[] = {-1, -1};
  const Tensor x = file.read("x", ElementType::f64, any);
  const std::int64_t rows[] = {x.shape()[0]};
  const Tensor y = file.read("target", ElementType::f64, rows);
  if (x.shape()[0] < 10)
    throw Error(ErrorCode::bad_file, "too few points to fit and to hold some out", path.string());
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return {Eigen::Map<const RowMajor>(x.as<double>().data(), x.shape()[0], x.shape()[1]),
          Eigen::Map<const Eigen::VectorXd>(y.as<double>().data(), y.shape()[0])};
}

Report run(const Request& request, const Options& options) {
  const Points points = read_points(request.input);
  const double strength = options.number("strength", 0, 1e9);
  const Eigen::Index known = points.x.rows() * 4 / 5, others = points.x.rows() - known;
  const Eigen::VectorXd judged = points.y.tail(others);
  const std::vector<double> truth(judged.begin(), judged.end());
  Report report;
  TextTable table({"method", "fitted to", "judged on", "RMSE", "r2"});
  Eigen::VectorXd found;
  const auto add = [&](const char* name, const std::string& prefix, const Eigen::MatrixXd& x) {
    const Stopwatch watch;
    found = fit_ridge(x.topRows(known), points.y.head(known), strength).predict_all(x.bottomRows(others));
    const double seconds = watch.seconds();
    const RegressionScore result = score(truth, std::vector<double>(found.begin(), found.end()));
    report.metrics.push_back({prefix + "rmse", result.rmse, ""});
    report.metrics.push_back({prefix + "fit_time", seconds, "s"});
    table.add_row({name, format_count(static_cast<double>(known)), format_count(static_cast<double>(others)),
                   fmt::format("{:.5f}", result.rmse), fmt::format("{:.4f}", result.r2)});
  };
  add("ridge", "floor_", points.x);
  add("ridge with squares and products", "", with_products_of_two(points.x));
  if (!request.output.empty()) {
    data::Hdf5Writer file(request.output);
    file.write("y", Tensor::from<double>({others}, std::vector<double>(found.begin(), found.end())));
    file.set_attribute("y", "first_row", std::int64_t{known});
    file.close();
  }
  report.text = table.to_string();
  return report;
}

}  // namespace

Eigen::MatrixXd with_products_of_two(const Eigen::MatrixXd& x) {
  const Eigen::Index n = x.cols();
  Eigen::MatrixXd all(x.rows(), n + n * (n + 1) / 2);
  all.leftCols(n) = x;
  Eigen::Index at = n;
  for (Eigen::Index a = 0; a < n; ++a)
    for (Eigen::Index b = a; b < n; ++b) all.col(at++) = x.col(a).cwiseProduct(x.col(b));
  return all;
}

Entry polynomial_baseline() {
  return {"mlp",
          "ridge regression, on the variables alone and with their squares and products",
          {{"strength", "1e-6", "of the penalty on weights"}},
          run};
}

}  // namespace superstep::baseline
