#include "superstep/baseline/trees.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "superstep/base/error.h"
#include "superstep/base/system/late_library.h"
#include "superstep/base/threads/startable_threads.h"

extern "C" void omp_set_num_threads(int threads);  // of OpenMP, which XGBoost brings along

namespace superstep::baseline {
namespace {

constinit const LateLibrary xgboost("XGBoost", SUPERSTEP_LATE_XGBOOST);
SUPERSTEP_LATE(xgboost, omp_set_num_threads);
SUPERSTEP_LATE(xgboost, XGBGetLastError);
SUPERSTEP_LATE(xgboost, XGBoosterCreate);
SUPERSTEP_LATE(xgboost, XGBoosterFree);
SUPERSTEP_LATE(xgboost, XGBoosterPredict);
SUPERSTEP_LATE(xgboost, XGBoosterSetParam);
SUPERSTEP_LATE(xgboost, XGBoosterUpdateOneIter);
SUPERSTEP_LATE(xgboost, XGDMatrixCreateFromMat_omp);
SUPERSTEP_LATE(xgboost, XGDMatrixFree);
SUPERSTEP_LATE(xgboost, XGDMatrixSetFloatInfo);

// OpenMP ends the program for a thread that it cannot have: it is asked for those that can be had, in all
// that XGBoost does from this thread.
int limit_openmp(int wanted) {
  const int threads = startable_threads(wanted);
  omp_set_num_threads(threads);
  return threads;
}

void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::invalid_argument, what, "decision trees");
}

void check(int status) {
  if (status != 0) throw Error(ErrorCode::internal, XGBGetLastError(), "decision trees");
}

class Rows {
 public:
  Rows(const TreeFeatures& x, int threads) {
    check(XGDMatrixCreateFromMat_omp(x.data(), static_cast<bst_ulong>(x.rows()),
                                     static_cast<bst_ulong>(x.cols()),
                                     std::numeric_limits<float>::quiet_NaN(), &handle_, threads));
  }
  ~Rows() { XGDMatrixFree(handle_); }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  DMatrixHandle handle() const { return handle_; }
  void set_labels(std::span<const double> y) {
    const std::vector<float> labels(y.begin(), y.end());
    check(XGDMatrixSetFloatInfo(handle_, "label", labels.data(), labels.size()));
  }

 private:
  DMatrixHandle handle_ = nullptr;
};

class Booster {
 public:
  explicit Booster(const Rows& training) {
    const DMatrixHandle known[] = {training.handle()};
    check(XGBoosterCreate(known, 1, &handle_));
  }
  ~Booster() { XGBoosterFree(handle_); }
  Booster(const Booster&) = delete;
  Booster& operator=(const Booster&) = delete;
  void set(const char* name, const std::string& value) {
    check(XGBoosterSetParam(handle_, name, value.c_str()));
  }
  void set(const char* name, double value) { set(name, fmt::format("{}", value)); }
  void step(int iteration, const Rows& training) {
    check(XGBoosterUpdateOneIter(handle_, iteration, training.handle()));
  }
  std::vector<double> predict(const Rows& rows) const {
    bst_ulong count = 0;
    const float* values = nullptr;
    check(XGBoosterPredict(handle_, rows.handle(), 0, 0, 0, &count, &values));
    return {values, values + count};
  }

 private:
  BoosterHandle handle_ = nullptr;
};

void configure(Booster& booster, const TreeSettings& settings, int threads, double mean) {
  const bool forest = settings.kind == TreeSettings::Kind::forest;
  booster.set("verbosity", 0);
  booster.set("objective", "reg:squarederror");
  booster.set("tree_method", "hist");
  booster.set("base_score", mean);
  booster.set("nthread", threads);
  booster.set("seed", settings.seed);
  booster.set("max_depth", settings.depth);
  booster.set("eta", forest ? 1 : settings.learning_rate);
  booster.set("subsample", settings.rows_a_tree);
  booster.set("colsample_bynode", settings.columns_a_split);
  booster.set("num_parallel_tree", forest ? settings.trees : 1);
  if (forest) booster.set("lambda", 1e-5);  // leaves are means, as Breiman's are
}

}  // namespace

TreeSettings random_forest(int threads) {
  return {TreeSettings::Kind::forest, 300, 20, 1, 0.632, 1.0 / 3, 1, threads};
}

std::vector<double> fit_trees(const TreeFeatures& x, std::span<const double> y, const TreeFeatures& others,
                              const TreeSettings& settings) {
  require(x.rows() > 0 && x.rows() == static_cast<Eigen::Index>(y.size()),
          "rows and values differ in number, or there are none");
  require(x.cols() == others.cols(), "the rows to predict have another number of columns");
  require(std::ranges::all_of(y, [](double value) { return std::isfinite(value); }),
          "a value to fit to is not finite");
  if (others.rows() == 0) return {};
  double mean = 0;
  for (const double value : y) mean += value / static_cast<double>(y.size());
  const int threads = limit_openmp(settings.threads);
  Rows training(x, threads);
  training.set_labels(y);
  Booster booster(training);
  configure(booster, settings, threads, mean);
  const int rounds = settings.kind == TreeSettings::Kind::forest ? 1 : settings.trees;
  for (int round = 0; round < rounds; ++round) booster.step(round, training);
  return booster.predict(Rows(others, threads));
}

}  // namespace superstep::baseline
