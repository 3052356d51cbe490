#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "superstep/run/user/metric_families.h"

namespace superstep::run {
namespace {

using transform::LossTerm;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

std::int64_t row_of(const Tensor& rows) {
  return rows.element_count() / std::max<std::int64_t>(1, rows.shape()[0]);
}

// --- triplets

double distance(const Tensor& x, const Tensor& y, std::int64_t first, std::int64_t features, double power) {
  double sum = 0;
  for (std::int64_t i = first; i < first + features; ++i)
    sum += std::pow(std::abs(x.at(i) - y.at(i) + 1e-6), power);
  return std::pow(sum, 1 / power);
}

// --- sequences of labels

using Labels = std::vector<std::int64_t>;

// What is said of one sample beside what is so.
class Sequence {
 public:
  Sequence(const Compared& c, std::size_t sample) : c_(c), term_(c.term) {
    const Shape& shape = c.output.shape();
    classes_ = shape[2], frames_ = shape[1], first_ = static_cast<std::int64_t>(sample) * frames_ * classes_;
    const std::int64_t row = c.at[sample];
    if (c.input_lengths) frames_ = static_cast<std::int64_t>(c.input_lengths->at(row));
    const std::int64_t longest = row_of(c.truth);
    const auto count = c.target_lengths ? static_cast<std::int64_t>(c.target_lengths->at(row)) : longest;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto label = static_cast<std::int64_t>(c.truth.at(row * longest + i));
      if (!c.target_lengths && (label < 0 || label == term_.blank)) break;
      truth_.push_back(label);
    }
  }

  const Labels& truth() const { return truth_; }

  bool is_number() const {
    for (std::int64_t i = 0; i < frames_ * classes_; ++i)
      if (std::isnan(c_.output.at(first_ + i))) return false;
    return true;
  }

  // The likeliest class of each frame, repetitions once, blanks left out.
  Labels said() const {
    Labels labels;
    std::int64_t before = term_.blank;
    for (std::int64_t t = 0; t < frames_; ++t) {
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < classes_; ++k)
        if (score(t, k) > score(t, best)) best = k;
      if (best != term_.blank && best != before) labels.push_back(best);
      before = best;
    }
    return labels;
  }

  // The loss, by the forward algorithm.
  double loss() const {
    const std::size_t places = 2 * truth_.size() + 1;
    std::vector<double> now(places, -infinity);
    now[0] = 0;
    for (std::int64_t t = 0; t < frames_; ++t) {
      const double all = log_sum(t);
      for (std::size_t s = places; s-- > 0;) {
        double arrived = now[s];
        if (s > 0) arrived = added(arrived, now[s - 1]);
        if (s > 1 && label_at(s) != label_at(s - 2)) arrived = added(arrived, now[s - 2]);
        now[s] = arrived + score(t, label_at(s)) - all;
      }
    }
    const double together = places > 1 ? added(now[places - 1], now[places - 2]) : now[0];
    if (together == -infinity && term_.zero_infinity) return 0;
    return -together / static_cast<double>(std::max<std::size_t>(truth_.size(), 1));
  }

 private:
  double score(std::int64_t t, std::int64_t k) const { return c_.output.at(first_ + t * classes_ + k); }
  std::int64_t label_at(std::size_t place) const { return place % 2 == 0 ? term_.blank : truth_[place / 2]; }

  static double added(double a, double b) {
    const double most = std::max(a, b);
    return most == -infinity ? most : most + std::log(std::exp(a - most) + std::exp(b - most));
  }
  double log_sum(std::int64_t t) const {
    double sum = -infinity;
    for (std::int64_t k = 0; k < classes_; ++k) sum = added(sum, score(t, k));
    return sum;
  }

  const Compared& c_;
  const LossTerm& term_;
  std::int64_t classes_ = 0, frames_ = 0, first_ = 0;
  Labels truth_;
};

// The fewest labels to put in, leave out or change that make one of the other (V. Levenshtein, 1966).
double edits(const Labels& a, const Labels& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t k = 0; k < b.size(); ++k) {
      const std::size_t changed = diagonal + (a[i] == b[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({changed, row[k] + 1, diagonal + 1});
    }
  }
  return static_cast<double>(row.back());
}

}  // namespace

// `accuracy`: how often the anchor is nearer to what is like it.
std::vector<double> measure_triplets(std::span<const std::string> names, const Compared& c) {
  const Shape& shape = c.output.shape();
  const std::int64_t features = std::max<std::int64_t>(1, shape[shape.rank() - 1]);
  const std::int64_t places = row_of(c.output) / features;
  double weights = 0, right = 0, loss = 0;
  for (std::size_t i = 0; i < c.at.size(); ++i)
    for (std::int64_t k = 0; k < places; ++k) {
      const double weight = c.mask ? c.mask->at(c.at[i] * places + k) : 1;
      if (weight == 0) continue;
      const std::int64_t first = (static_cast<std::int64_t>(i) * places + k) * features;
      const double near = distance(c.output, *c.positive, first, features, c.term.power);
      double far = distance(c.output, *c.negative, first, features, c.term.power);
      right += std::isnan(near + far) ? near + far : weight * static_cast<double>(near < far);
      if (c.term.swap) far = std::min(far, distance(*c.positive, *c.negative, first, features, c.term.power));
      const double above = near - far + c.term.margin;
      loss += weight * (above < 0 ? 0 : above), weights += weight;
    }
  std::vector<double> values;
  for (const std::string& name : names)
    values.push_back(weights > 0 ? (name == "accuracy" ? right : loss) / weights : none);
  return values;
}

// `label_error`: edits for each label that is so, over all samples; `accuracy`: samples without one.
std::vector<double> measure_sequences(std::span<const std::string> names, const Compared& c) {
  double weights = 0, labels = 0, wrong = 0, right = 0, loss = 0;
  const bool wants_loss = std::ranges::find(names, "ctc") != names.end();
  for (std::size_t i = 0; i < c.at.size(); ++i) {
    const double weight = c.mask ? c.mask->at(c.at[i]) : 1;
    if (weight == 0) continue;
    const Sequence sample(c, i);
    const double away = sample.is_number() ? edits(sample.said(), sample.truth()) : none;
    weights += weight, labels += weight * static_cast<double>(sample.truth().size());
    wrong += weight * away, right += std::isnan(away) ? away : away == 0 ? weight : 0;
    if (wants_loss) loss += weight * sample.loss();
  }
  std::vector<double> values;
  for (const std::string& name : names) {
    const bool rate = name == "label_error";
    const double of = rate ? wrong : name == "accuracy" ? right : loss, all = rate ? labels : weights;
    values.push_back(all > 0 ? of / all : none);
  }
  return values;
}

}  // namespace superstep::run
