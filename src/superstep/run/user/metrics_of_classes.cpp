#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "superstep/run/user/metric_families.h"

namespace superstep::run {
namespace {

using transform::LossKind;

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double ratio(double of, double all) { return all > 0 ? of / all : 0; }  // scikit-learn's zero_division=0

std::int64_t row_of(const Tensor& rows) { return rows.element_count() / rows.shape()[0]; }

// What is found for a class beside what is so.
struct Counts {
  double both = 0, invented = 0, missed = 0;
  double precision() const { return ratio(both, both + invented); }
  double recall() const { return ratio(both, both + missed); }
  double f1() const { return ratio(2 * both, 2 * both + invented + missed); }
  double iou() const { return ratio(both, both + invented + missed); }
  bool seen() const { return both + invented + missed > 0; }
};

// --- shares of yes and no

struct Shares {
  double weight = 0, right = 0, loss = 0;
  Counts yes;
  std::vector<Ranked> ranked;  // where an area is asked for
};

bool gives_logits(LossKind kind) { return kind == LossKind::bce_with_logits || kind == LossKind::focal; }

double cross_entropy_of(double score, double truth, bool logits) {
  if (logits) return std::max(score, 0.0) - score * truth + std::log1p(std::exp(-std::abs(score)));
  const auto bounded = [](double p) {
    return p > 0 ? std::max(std::log(p), -100.0) : std::isnan(p) ? p : -100.0;
  };
  return -(truth * bounded(score) + (1 - truth) * bounded(1 - score));
}

Shares shares_of(const Compared& c, bool ranks) {
  Shares s;
  const bool logits = gives_logits(c.term.kind);
  const std::int64_t row = row_of(c.truth);
  for (std::size_t i = 0; i < c.at.size(); ++i)
    for (std::int64_t k = 0; k < row; ++k) {
      const double weight = c.mask ? c.mask->at(c.at[i] * row + k) : 1;
      if (weight == 0) continue;
      const double score = c.output.at(static_cast<std::int64_t>(i) * row + k),
                   t = c.truth.at(c.at[i] * row + k);
      const bool is_so = t >= 0.5, said = score >= (logits ? 0 : 0.5);
      s.weight += weight;
      s.right += std::isnan(score) ? score : weight * static_cast<double>(is_so == said);
      s.loss += weight * cross_entropy_of(score, t, logits);
      if (is_so) (said ? s.yes.both : s.yes.missed) += weight;
      if (!is_so && said) s.yes.invented += weight;
      if (ranks) s.ranked.push_back({score, weight, is_so});
    }
  return s;
}

double metric(const std::string& name, Shares& s) {
  if (s.weight == 0) return none;
  if (name == "bce") return s.loss / s.weight;
  if (name == "accuracy") return s.right / s.weight;
  if (std::isnan(s.right)) return s.right;
  if (name == "precision") return s.yes.precision();
  if (name == "recall") return s.yes.recall();
  if (name == "f1") return s.yes.f1();
  if (name == "iou") return s.yes.iou();
  return area_under_curve(std::move(s.ranked));
}

// --- classes

// Where the scores of a place of a sample lie.
struct Scores {
  const Compared& c;
  std::int64_t first, stride;
  double operator()(std::int64_t k) const { return c.output.at(first + k * stride); }
};

struct Classes {
  double weight = 0, right = 0, near = 0, loss = 0;
  std::vector<Counts> counts;
  std::vector<std::vector<Ranked>> ranked;  // by class, where an area is asked for
};

// Scores [N, C, ...] or, of tokens, [N, ..., C], against labels [N, ...].
Scores scores_at(const Compared& c, std::int64_t sample, std::int64_t place, std::int64_t places) {
  if (c.term.kind == LossKind::token_cross_entropy) return {c, (sample * places + place) * c.classes, 1};
  const std::int64_t group = sample * (places / c.inner) + place / c.inner;
  return {c, group * c.classes * c.inner + place % c.inner, c.inner};
}

double label_counts(const Compared& c, std::int64_t label, std::int64_t row, std::int64_t place,
                    std::int64_t places) {
  if (c.term.ignored && label == *c.term.ignored) return 0;
  if (c.term.kind == LossKind::token_cross_entropy && label < 0) return 0;
  return c.mask ? c.mask->at(row * places + place) : 1;
}

void count(Classes& all, const Scores& score, std::int64_t classes, std::int64_t label, double weight,
           bool ranks) {
  double highest = score(0), sum = 0;
  std::int64_t said = 0;
  // Of equal scores the first is what the model says. NaN is the highest: then nothing is right, nor wrong.
  for (std::int64_t k = 1; k < classes; ++k)
    if (score(k) > highest || std::isnan(score(k))) highest = score(k), said = k;
  for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(score(k) - highest);
  const double own = score(label);
  std::int64_t before = 0;
  for (std::int64_t k = 0; k < classes; ++k)
    before += score(k) > own || (score(k) == own && k < label) ? 1 : 0;
  all.weight += weight;
  all.right += std::isnan(highest) ? highest : weight * static_cast<double>(said == label);
  all.near += weight * static_cast<double>(before < 5);
  all.loss += weight * (std::log(sum) + highest - own);
  Counts& truth = all.counts[static_cast<std::size_t>(label)];
  (said == label ? truth.both : truth.missed) += weight;
  if (said != label) all.counts[static_cast<std::size_t>(said)].invented += weight;
  for (std::int64_t k = 0; ranks && k < classes; ++k)
    all.ranked[static_cast<std::size_t>(k)].push_back(
        {score(k) - highest - std::log(sum), weight, k == label});
}

Classes classes_of(const Compared& c, bool ranks) {
  Classes all;
  all.counts.resize(static_cast<std::size_t>(c.classes));
  all.ranked.resize(static_cast<std::size_t>(c.classes));
  const std::int64_t places = row_of(c.truth);
  for (std::size_t i = 0; i < c.at.size(); ++i)
    for (std::int64_t place = 0; place < places; ++place) {
      const auto label = static_cast<std::int64_t>(c.truth.at(c.at[i] * places + place));
      const double weight = label_counts(c, label, c.at[i], place, places);
      if (weight != 0)
        count(all, scores_at(c, static_cast<std::int64_t>(i), place, places), c.classes, label, weight,
              ranks);
    }
  return all;
}

// Over the classes that occur, among labels or among answers.
template <class Of>
double mean_over(const std::vector<Counts>& counts, Of of, bool labels_alone = false) {
  double sum = 0, seen = 0;
  for (const Counts& each : counts)
    if (labels_alone ? each.both + each.missed > 0 : each.seen()) sum += std::invoke(of, each), seen += 1;
  return seen > 0 ? sum / seen : none;
}

double mean_area(std::vector<std::vector<Ranked>>& ranked) {
  double sum = 0, seen = 0;
  for (std::vector<Ranked>& each : ranked)
    if (const double area = area_under_curve(std::move(each)); !std::isnan(area)) sum += area, seen += 1;
  return seen > 0 ? sum / seen : none;
}

double metric(const std::string& name, Classes& all) {
  if (all.weight == 0) return none;
  if (name == "cross_entropy") return all.loss / all.weight;
  if (name == "accuracy") return all.right / all.weight;
  if (std::isnan(all.right)) return all.right;
  if (name == "top5") return all.near / all.weight;
  if (name == "auc") return mean_area(all.ranked);
  if (name == "balanced_accuracy") return mean_over(all.counts, &Counts::recall, true);
  if (name == "precision") return mean_over(all.counts, &Counts::precision);
  if (name == "recall") return mean_over(all.counts, &Counts::recall);
  return name == "f1" ? mean_over(all.counts, &Counts::f1) : mean_over(all.counts, &Counts::iou);
}

template <class Sums>
std::vector<double> by_name(std::span<const std::string> names, Sums sums) {
  std::vector<double> values;
  for (const std::string& name : names) values.push_back(metric(name, sums));
  return values;
}

bool wants_area(std::span<const std::string> names) { return std::ranges::find(names, "auc") != names.end(); }

}  // namespace

double area_under_curve(std::vector<Ranked> ranked) {
  std::ranges::sort(ranked, {}, &Ranked::score);
  double below = 0, area = 0, so = 0;  // weight of what is not so and lies below
  for (std::size_t i = 0; i < ranked.size();) {
    double tied_so = 0, tied_not = 0;
    const double score = ranked[i].score;
    for (; i < ranked.size() && !(ranked[i].score > score); ++i)
      (ranked[i].is_so ? tied_so : tied_not) += ranked[i].weight;
    area += tied_so * (below + tied_not / 2);
    below += tied_not, so += tied_so;
  }
  return below > 0 && so > 0 ? area / (below * so) : none;
}

std::vector<double> measure_shares(std::span<const std::string> names, const Compared& compared) {
  return by_name(names, shares_of(compared, wants_area(names)));
}

std::vector<double> measure_classes(std::span<const std::string> names, const Compared& compared) {
  return by_name(names, classes_of(compared, wants_area(names)));
}

}  // namespace superstep::run
