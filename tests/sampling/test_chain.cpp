#include <gtest/gtest.h>

#include "superstep/base/thread_pool.h"
#include "superstep/sampling/chain.h"
#include "tests/expect_error.h"
#include "tests/sampling/densities.h"

namespace superstep::sampling {
namespace {

TEST(Chain, HasTheMomentsOfAStandardNormal) {
  for (const Method method : {Method::nuts, Method::hmc, Method::metropolis}) {
    const ChainSettings settings{.method = method,
                                 .warm_up = 500,
                                 .target_acceptance = usual_acceptance(method),
                                 .leapfrog_steps = 7,
                                 .jitter = 0.3};
    const int draws = method == Method::metropolis ? 150000 : 20000;
    const Chains chains = draw([] { return standard_normal(1); }, settings, 4, draws)[0];
    const Convergence found = convergence(chains);
    EXPECT_NEAR(moments(chains).mean, 0, 4 * found.error_of_mean) << name_of(method);
    EXPECT_NEAR(moments(chains).variance, 1, 0.02) << name_of(method);
    EXPECT_LT(found.r_hat, 1.01) << name_of(method);
  }
}

// Of 50 dimensions: variances from 0.01 to 4, and neighbours that are correlated by 0.7.
struct Correlated {
  static constexpr std::size_t size = 50;
  static constexpr double correlation = 0.7;
  static double deviation(std::size_t i) { return 0.1 * std::pow(20, static_cast<double>(i) / (size - 1)); }

  // The inverse of an AR(1) correlation matrix is tridiagonal.
  static Gaussian density() {
    std::vector<std::vector<double>> precision(size, std::vector<double>(size));
    const double r = correlation, scale = 1 / (1 - r * r);
    for (std::size_t i = 0; i < size; ++i) {
      const bool inside = i > 0 && i + 1 < size;
      precision[i][i] = scale * (inside ? 1 + r * r : 1) / (deviation(i) * deviation(i));
      if (i + 1 < size)
        precision[i][i + 1] = precision[i + 1][i] = -scale * r / (deviation(i) * deviation(i + 1));
    }
    return Gaussian(precision);
  }
};

TEST(Chain, FindsTheMomentsOfACorrelatedGaussian) {
  const ChainSettings settings{.warm_up = 800};
  const auto found = draw(Correlated::density, settings, 4, 2000);
  for (std::size_t i = 0; i < Correlated::size; ++i) {
    const double deviation = Correlated::deviation(i);
    const Convergence about = convergence(found[i]);
    EXPECT_LT(about.r_hat, 1.01) << i;
    EXPECT_GT(about.bulk, 1000) << i;
    EXPECT_NEAR(moments(found[i]).mean, 0, 4.5 * about.error_of_mean) << i;
    EXPECT_NEAR(moments(found[i]).variance / (deviation * deviation), 1, 0.12) << i;
    if (i == 0) continue;
    Chains product = found[i];
    for (std::size_t c = 0; c < product.size(); ++c)
      for (std::size_t k = 0; k < product[c].size(); ++k)
        product[c][k] *= found[i - 1][c][k] / (deviation * Correlated::deviation(i - 1));
    EXPECT_NEAR(moments(product).mean, Correlated::correlation, 4.5 * convergence(product).error_of_mean);
  }
}

TEST(Chain, LearnsStepAndVariances) {
  Gaussian density = Correlated::density();
  Chain chain(density, {.warm_up = 1000}, 0, std::vector<double>(Correlated::size, 0.0));
  while (chain.warms_up()) chain.next();
  for (std::size_t i = 0; i < Correlated::size; ++i)
    EXPECT_NEAR(std::log(chain.inverse_mass()[i] / std::pow(Correlated::deviation(i), 2)), 0, 0.7) << i;
  double acceptance = 0;
  for (int i = 0; i < 300; ++i) acceptance += chain.next().acceptance;
  EXPECT_NEAR(acceptance / 300, 0.8, 0.08);
}

TEST(Chain, GoesOnWithTheSameBits) {
  for (const Method method : {Method::nuts, Method::hmc, Method::metropolis}) {
    const ChainSettings settings{.method = method, .warm_up = 120, .leapfrog_steps = 5, .jitter = 0.2};
    Gaussian density = Correlated::density(), other = Correlated::density();
    const std::vector<double> start(Correlated::size, 0.01);
    Chain whole(density, settings, 2, start);
    std::optional<Chain> pieces(std::in_place, other, settings, 2, start);
    for (int i = 0; i < 200; ++i) {
      whole.next();
      pieces->next();
      if (i % 7 == 0) {
        const ChainState state = pieces->state();
        pieces.emplace(other, settings, 2, state);
      }
      ASSERT_EQ(std::vector<double>(whole.position().begin(), whole.position().end()),
                std::vector<double>(pieces->position().begin(), pieces->position().end()))
          << name_of(method) << " " << i;
    }
    Chain another(other, settings, 3, start);
    for (int i = 0; i < 200; ++i) another.next();
    EXPECT_NE(another.position()[0], whole.position()[0]) << "chains have streams of their own";
  }
}

TEST(Chain, IsTheSameOnAnyThreads) {
  std::vector<std::vector<double>> ends;
  for (const int threads : {1, 2, 7, 64}) {
    ThreadPool pool(threads);
    std::vector<std::vector<double>> found(8);
    pool.parallel_for(8, [&](std::int64_t c, int) {
      Gaussian density = Correlated::density();
      Chain chain(density, {.warm_up = 60}, static_cast<int>(c), std::vector<double>(Correlated::size, 0.0));
      for (int i = 0; i < 90; ++i) chain.next();
      found[static_cast<std::size_t>(c)].assign(chain.position().begin(), chain.position().end());
    });
    std::vector<double> all;
    for (const auto& each : found) all.insert(all.end(), each.begin(), each.end());
    ends.push_back(all);
    EXPECT_EQ(ends.back(), ends.front()) << threads;
  }
}

// Stops whoever asks it for the n-th time, once.
class Stopping : public Gaussian {
 public:
  explicit Stopping(std::int64_t at) : Gaussian(Correlated::density()), at_(at) {}
  double evaluate(std::span<const double> x, std::span<double> gradient) override {
    if (asked + 1 == at_ && !std::exchange(stopped_, true)) throw Error(ErrorCode::interrupted, "here");
    return Gaussian::evaluate(x, gradient);
  }

 private:
  std::int64_t at_;
  bool stopped_ = false;
};

TEST(Chain, IsWhereItWasWhenItIsStopped) {
  const ChainSettings settings{.warm_up = 80};
  const std::vector<double> start(Correlated::size, 0.01);
  Gaussian density = Correlated::density();
  Chain whole(density, settings, 0, start);
  for (int i = 0; i < 100; ++i) whole.next();
  int stops = 0;
  for (std::int64_t at = 2; at < density.asked; at += 331) {
    Stopping stopping(at);
    Chain chain(stopping, settings, 0, start);
    while (chain.iteration() < 100) try {
        chain.next();
      } catch (const Error&) {
        ++stops;
      }
    ASSERT_EQ(chain.position()[3], whole.position()[3]) << at;
  }
  EXPECT_GT(stops, 10);
}

// A funnel with a wall: paths that come near it lose their energy.
class Cliff : public LogDensity {
 public:
  std::size_t size() const override { return 2; }
  double evaluate(std::span<const double> x, std::span<double> gradient) override {
    const double steep = std::exp(std::min(700.0, -4 * x[0]));
    gradient[0] = -x[0] + 2 * steep * x[1] * x[1] - 2;
    gradient[1] = -steep * x[1];
    return -x[0] * x[0] / 2 - 2 * x[0] - steep * x[1] * x[1] / 2;
  }
  double value(std::span<const double> x) override {
    double gradient[2];
    return evaluate(x, gradient);
  }
};

TEST(Chain, SaysWhereItDiverges) {
  Cliff cliff;
  Chain chain(cliff, {.warm_up = 200}, 0, std::vector<double>{1, 0.1});
  int diverged = 0;
  for (int i = 0; i < 1200; ++i) diverged += chain.next().divergent;
  EXPECT_GT(diverged, 0);
  Gaussian smooth = standard_normal(2);
  Chain calm(smooth, {.warm_up = 200}, 0, std::vector<double>{1, 0.1});
  for (int i = 0; i < 200; ++i) calm.next();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(calm.next().divergent);
}

class Nowhere : public Gaussian {
 public:
  Nowhere() : Gaussian(standard_normal(1)) {}
  double evaluate(std::span<const double>, std::span<double>) override {
    return std::numeric_limits<double>::quiet_NaN();
  }
};

TEST(Chain, RefusesAStartWithoutADensity) {
  Nowhere density;
  expect_error(ErrorCode::diverged, {"chain 2", "the log density at the start is nan"},
               [&] { Chain(density, {}, 1, std::vector<double>{0}); });
  expect_error(ErrorCode::invalid_argument, {"there is no method 'nutz'", "nuts"},
               [] { method_from_name("nutz"); });
}

TEST(WarmUp, HasWindowsThatDouble) {
  const WarmUpPlan plan = plan_warm_up(1000);
  EXPECT_EQ(plan.first, 75);
  EXPECT_EQ(plan.last, 50);
  EXPECT_EQ(plan.ends, (std::vector<std::int64_t>{100, 150, 250, 450, 950}));
  EXPECT_TRUE(plan.gathers(75) && plan.gathers(949));
  EXPECT_FALSE(plan.gathers(74) || plan.gathers(950));
  EXPECT_TRUE(plan.takes_over(99));
  EXPECT_FALSE(plan.takes_over(100));
  EXPECT_EQ(plan_warm_up(100).ends, (std::vector<std::int64_t>{90}));
  EXPECT_TRUE(plan_warm_up(19).ends.empty());
  EXPECT_FALSE(plan_warm_up(19).gathers(3));
}

TEST(WarmUp, AveragesTowardsTheAcceptanceThatIsWanted) {
  DualAveraging averaging(0.7);
  averaging.restart(1);
  for (int i = 0; i < 2000; ++i) averaging.learn(std::exp(-averaging.step()));
  EXPECT_NEAR(averaging.final_step(), -std::log(0.7), 0.02);
}

TEST(WarmUp, CountsVariances) {
  RunningVariance variance(2);
  for (const auto& [a, b] : {std::pair(1.0, 10.0), {2, 10}, {6, 10}}) variance.add(std::vector<double>{a, b});
  // 7 by hand; three of eight parts of it, and five of 1e-3.
  EXPECT_NEAR(variance.regularised()[0], 3.0 / 8 * 7 + 5.0 / 8 * 1e-3, 1e-12);
  EXPECT_NEAR(variance.regularised()[1], 5.0 / 8 * 1e-3, 1e-12);
}

}  // namespace
}  // namespace superstep::sampling
