#include "superstep/baseline/linear_svm.h"

#include <linear.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "superstep/base/error.h"
#include "superstep/physics/stream_blocks.h"

namespace superstep::baseline {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::invalid_argument, what, "support vector machine");
}

// The rows as LIBLINEAR wants them: non-zero values with their numbers from 1, ended by -1.
class SparseRows {
 public:
  explicit SparseRows(const TreeFeatures& x) {
    std::vector<std::size_t> first;
    for (Eigen::Index row = 0; row < x.rows(); ++row) {
      first.push_back(nodes_.size());
      for (Eigen::Index column = 0; column < x.cols(); ++column)
        if (x(row, column) != 0)
          nodes_.push_back({static_cast<int>(column) + 1, static_cast<double>(x(row, column))});
      nodes_.push_back({static_cast<int>(x.cols()) + 1, 1.0});  // the bias, as a feature that is always 1
      nodes_.push_back({-1, 0});
    }
    for (const std::size_t at : first) rows_.push_back(&nodes_[at]);
  }
  feature_node** rows() { return rows_.data(); }

 private:
  std::vector<feature_node> nodes_;
  std::vector<feature_node*> rows_;
};

struct ModelDeleter {
  void operator()(model* each) const { free_and_destroy_model(&each); }
};

// Weights of one class, the bias last.
Eigen::VectorXf fit_class(SparseRows& rows, const std::vector<int>& labels, int positive, int features,
                          double cost) {
  std::vector<double> sides;
  for (const int label : labels) sides.push_back(label == positive ? 1 : -1);
  problem task{};
  task.l = static_cast<int>(labels.size());
  task.n = features + 1;
  task.y = sides.data();
  task.x = rows.rows();
  task.bias = 1;
  parameter settings{};
  settings.solver_type = L2R_L2LOSS_SVC;
  settings.eps = 0.01;
  settings.C = cost;
  const std::unique_ptr<model, ModelDeleter> fitted(train(&task, &settings));
  const double sign = fitted->label[0] == 1 ? 1 : -1;
  Eigen::VectorXf weights(features + 1);
  for (int k = 0; k <= features; ++k) weights[k] = static_cast<float>(sign * fitted->w[k]);
  return weights;
}

}  // namespace

Eigen::MatrixXf LinearSvm::scores(const TreeFeatures& x) const {
  return (x * weights.transpose()).rowwise() + bias.transpose();
}

LinearSvm fit_linear_svm(const TreeFeatures& x, const std::vector<int>& labels, int classes, double cost,
                         ThreadPool& pool) {
  require(x.rows() == static_cast<Eigen::Index>(labels.size()), "rows and labels differ in number");
  require(std::ranges::all_of(labels, [&](int label) { return label >= 0 && label < classes; }),
          "a label is outside the classes");
  require(!labels.empty() && std::ranges::any_of(labels, [&](int label) { return label != labels[0]; }),
          "two classes at least are needed");
  set_print_string_function([](const char*) {});
  SparseRows rows(x);
  const int features = static_cast<int>(x.cols());
  LinearSvm svm{Eigen::MatrixXf::Zero(classes, features),
                Eigen::VectorXf::Constant(classes, -std::numeric_limits<float>::infinity())};
  pool.parallel_for(classes, [&](std::int64_t item, int) {
    data::throw_if_interrupted();
    const int each = static_cast<int>(item);
    if (std::ranges::find(labels, each) == labels.end()) return;
    const Eigen::VectorXf weights = fit_class(rows, labels, each, features, cost);
    svm.weights.row(each) = weights.head(features);
    svm.bias[each] = weights[features];
  });
  return svm;
}

}  // namespace superstep::baseline
