// Posteriors of models: against closed forms, and as runs that are stopped and go on.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numbers>
#include <thread>

#include "superstep/base/file.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/npz.h"
#include "superstep/run/sample/chain_record.h"
#include "superstep/run/sample/chains.h"
#include "superstep/run/sample/sample.h"
#include "superstep/sampling/laplace.h"
#include "superstep/sampling/warm_up.h"
#include "tests/contains.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;

constexpr std::int64_t rows = 60, features = 3;
constexpr double noise = 0.5;

// y = x A without a bias, and rows of it with noise.
class Linear : public ::testing::Test {
 protected:
  Linear() {
    const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                               .inputs = {on::port("x", on::f32, {"N", "3"})},
                               .outputs = {on::port("y", on::f32, {"N", "1"})},
                               .initializers = {on::floats("A", {3, 1}, {0.1F, -0.2F, 0.3F})}};
    std::ofstream(model_, std::ios::binary) << on::model_bytes(on::graph(parts));
    RandomStream random(11);
    for (std::int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < features; ++k) {
        x_.set(i * features + k, random.normal());
        sum += x_.at(i * features + k) * (static_cast<double>(k) - 0.7);
      }
      y_.set(i, sum + noise * random.normal());
    }
    data::write_npz(data_, {{"x", x_}, {"target", y_}});
  }

  SampleSettings settings() const {
    SampleSettings s;
    s.model.workload = model_.string();
    s.model.loss = "mse";
    s.model.data = data_;
    s.noise = noise;
    s.warm_up = 300, s.draws = 2000, s.chains = 4;
    s.methods = {"nuts"};
    return s;
  }

  // Of Bayesian regression with the prior N(0, 1): precision I + X^T X / noise^2.
  struct Exact {
    Eigen::VectorXd mean;
    Eigen::MatrixXd covariance;
    double log_evidence;
    std::vector<double> predictive;  // log density of each held-out target
  };
  Exact exact(std::int64_t training) const {
    Eigen::MatrixXd x(training, features);
    Eigen::VectorXd y(training);
    for (std::int64_t i = 0; i < training; ++i) {
      y(i) = y_.at(i);
      for (std::int64_t k = 0; k < features; ++k) x(i, k) = x_.at(i * features + k);
    }
    const Eigen::MatrixXd precision =
        Eigen::MatrixXd::Identity(features, features) + x.transpose() * x / (noise * noise);
    Exact found{.covariance = precision.inverse()};
    found.mean = found.covariance * x.transpose() * y / (noise * noise);
    const Eigen::MatrixXd all =
        x * x.transpose() + noise * noise * Eigen::MatrixXd::Identity(training, training);
    found.log_evidence = -0.5 * (y.dot(all.ldlt().solve(y)) + all.ldlt().vectorD().array().log().sum() +
                                 static_cast<double>(training) * std::log(2 * std::numbers::pi));
    for (std::int64_t i = training; i < rows; ++i) {
      Eigen::VectorXd row(features);
      for (std::int64_t k = 0; k < features; ++k) row(k) = x_.at(i * features + k);
      const double variance = noise * noise + row.dot(found.covariance * row),
                   off = y_.at(i) - row.dot(found.mean);
      found.predictive.push_back(-0.5 * (off * off / variance + std::log(2 * std::numbers::pi * variance)));
    }
    return found;
  }

  ScratchFolder folder_;
  std::filesystem::path model_ = folder_ / "linear.onnx", data_ = folder_ / "rows.npz";
  Tensor x_{ElementType::f32, {rows, features}}, y_{ElementType::f32, {rows, 1}};
};

// The draws of parameter k, and of the product of two about their exact means, by chain.
sampling::Chains draws_of(const std::filesystem::path& folder, int chains, std::int64_t k) {
  sampling::Chains all;
  for (int c = 0; c < chains; ++c) {
    const Tensor a = data::read_npz(chain_file(folder, c)).at("A");
    all.emplace_back();
    for (std::int64_t d = 0; d < a.shape()[0]; ++d) all.back().push_back(a.at(d * features + k));
  }
  return all;
}

TEST_F(Linear, HasTheMeanAndCovarianceOfBayesianRegression) {
  SampleSettings s = settings();
  s.methods = {"nuts", "hmc", "laplace"};
  s.leapfrog_steps = 8;
  const auto out = folder_ / "out";
  const SampleReport report = sample(s, out, {});
  const Exact truth = exact(report.training);
  for (const std::string& method : s.methods)
    for (std::int64_t i = 0; i < features; ++i) {
      const sampling::Chains own = draws_of(out / method, s.chains, i);
      const NumberSummary found = summarise("", own);
      EXPECT_NEAR(found.mean, truth.mean(i), 3 * found.convergence.error_of_mean) << method << i;
      EXPECT_LT(found.convergence.r_hat, 1.01);
      for (std::int64_t k = 0; k <= i; ++k) {
        sampling::Chains products = draws_of(out / method, s.chains, k);
        for (std::size_t c = 0; c < products.size(); ++c)
          for (std::size_t d = 0; d < products[c].size(); ++d)
            products[c][d] = (products[c][d] - truth.mean(k)) * (own[c][d] - truth.mean(i));
        const NumberSummary product = summarise("", products);
        EXPECT_NEAR(product.mean, truth.covariance(i, k), 3 * product.convergence.error_of_mean)
            << method << i << k;
      }
    }
  // A Gaussian is what a Laplace approximation takes it for.
  double evidence = 0;
  ASSERT_EQ(std::sscanf(report.methods[2].told.c_str(),
                        "mode after %*d evaluations, slope %*g; log evidence %lg", &evidence),
            1)
      << report.methods[2].told;
  EXPECT_NEAR(evidence, truth.log_evidence, 2e-3 * std::abs(truth.log_evidence));
}

TEST_F(Linear, HasNoModeBesideItsNoise) {
  SampleSettings s = settings();
  s.methods = {"nuts", "laplace"}, s.noise.reset();
  expect_error(ErrorCode::invalid_argument, {"the noise vanishes", "--noise"},
               [&] { sample(s, folder_ / "out", {}); });
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(Linear, ForecastsAsTheExactPredictiveDistribution) {
  const SampleReport report = sample(settings(), {}, {});
  const Exact truth = exact(report.training);
  ASSERT_EQ(report.methods[0].log_likelihoods.size(), truth.predictive.size());
  for (std::size_t i = 0; i < truth.predictive.size(); ++i)
    EXPECT_NEAR(report.methods[0].log_likelihoods[i], truth.predictive[i], 0.02) << i;
}

TEST_F(Linear, FindsTheSizeOfTheNoise) {
  SampleSettings s = settings();
  s.noise.reset();
  s.draws = 800;
  const SampleReport report = sample(s, {}, {});
  const NumberSummary& found = report.methods[0].scales.at(0);
  EXPECT_EQ(found.name, "noise");
  EXPECT_LT(found.low, noise);
  EXPECT_GT(found.high, noise);
  EXPECT_LT(found.convergence.r_hat, 1.01);
}

std::vector<std::string> bytes_of_draws(const std::filesystem::path& folder, int chains) {
  std::vector<std::string> all;
  for (int c = 0; c < chains; ++c) {
    const auto arrays = data::read_npz(chain_file(folder, c));
    for (const char* name : {"A", "log_likelihood", "predictions", "iteration/energy", "state/position"}) {
      const Tensor& tensor = arrays.at(name);
      all.emplace_back(reinterpret_cast<const char*>(tensor.bytes()), tensor.byte_count());
    }
  }
  return all;
}

TEST_F(Linear, GivesTheSameBitsOnAnyThreads) {
  SampleSettings s = settings();
  s.chains = 6, s.warm_up = 60, s.draws = 40;
  std::vector<std::string> first;
  for (const int threads : {1, 2, 5, 64}) {
    s.threads = threads;
    const auto out = folder_ / fmt::format("threads-{}", threads);
    sample(s, out, {});
    const auto found = bytes_of_draws(out / "nuts", s.chains);
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << threads;
  }
  s.model.seed = 2;
  sample(s, folder_ / "other", {});
  EXPECT_NE(bytes_of_draws(folder_ / "other" / "nuts", s.chains), first);
}

TEST_F(Linear, GoesOnAfterItWasStopped) {
  SampleSettings s = settings();
  s.warm_up = 100, s.draws = 3000, s.threads = 2;
  sample(s, folder_ / "whole", {});
  const auto whole = bytes_of_draws(folder_ / "whole" / "nuts", s.chains);
  int stops = 0;
  for (int sitting = 0; sitting < 200; ++sitting) {
    std::jthread stopper([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      request_interrupt();
    });
    try {
      sample(s, folder_ / "pieces", {});
      stopper.join();
      clear_interrupt();
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::interrupted);
      EXPECT_TRUE(contains(error.hint(), "the same command goes on")) << error.what();
      ++stops;
      stopper.join();
      clear_interrupt();
    }
  }
  EXPECT_GT(stops, 0);
  EXPECT_EQ(bytes_of_draws(folder_ / "pieces" / "nuts", s.chains), whole);
}

TEST_F(Linear, GoesFurtherAndRefusesOtherDraws) {
  SampleSettings s = settings();
  s.warm_up = 80, s.draws = 30;
  const auto out = folder_ / "out";
  sample(s, out, {});
  s.draws = 70;
  sample(s, out, {});
  sample(s, folder_ / "whole", {});
  EXPECT_EQ(bytes_of_draws(out / "nuts", s.chains), bytes_of_draws(folder_ / "whole" / "nuts", s.chains));
  s.draws = 50;
  expect_error(ErrorCode::invalid_argument, {"holds draws of draws 70, not of 50"},
               [&] { sample(s, out, {}); });
  s.draws = 70, s.prior.deviation = 2;
  expect_error(ErrorCode::invalid_argument, {"prior"}, [&] { sample(s, out, {}); });
  write_file_atomically(chain_file(out / "nuts", 0), "PK");
  s.prior.deviation = 1;
  expect_error(ErrorCode::bad_file, {"chain-1.npz"}, [&] { sample(s, out, {}); });
}

TEST_F(Linear, WritesPageTableAndSummary) {
  SampleSettings s = settings();
  s.warm_up = 100, s.draws = 200;
  s.methods = {"nuts", "metropolis"};
  const auto out = folder_ / "out";
  const SampleReport report = sample(s, out, {});
  const std::string page = read_text_file(out / "sample.html"),
                    table = read_text_file(out / "nuts/summary.csv");
  for (const char* words :
       {"Log-likelihood of held-out samples", "Forecasts of held-out samples", "Log density",
        "Do the chains agree?", "Do momenta reach every energy?", "metropolis"})
    EXPECT_TRUE(contains(page, words)) << words;
  EXPECT_TRUE(contains(table, "A[2][0],"));
  EXPECT_TRUE(contains(table, "prediction[48],"));
  EXPECT_EQ(nlohmann::json::parse(read_text_file(out / "summary.json")).at("methods").size(), 2U);
  EXPECT_GT(report.methods[0].log_likelihood, report.constant->value);
}

TEST_F(Linear, NamesWhatIsNotANumber) {
  x_.set(7 * features + 1, std::nan(""));
  data::write_npz(data_, {{"x", x_}, {"target", y_}});
  expect_error(ErrorCode::bad_file, {"rows.npz"}, [&] { sample(settings(), {}, {}); });
}

// --- densities of networks

TrainSettings network(const std::string& workload, std::vector<std::string> options = {},
                      std::int64_t samples = 0) {
  TrainSettings settings;
  settings.workload = workload, settings.model_options = std::move(options), settings.samples = samples;
  return settings;
}

struct Density {
  Model model;
  ThreadPool pool{1};
  std::unique_ptr<Task> task;
  Posterior posterior;
  std::shared_ptr<const PosteriorData> data;
  std::unique_ptr<PosteriorDensity> density;

  explicit Density(const TrainSettings& settings, const Prior& prior = {})
      : model(settings),
        task(model.open_task({.samples = settings.samples,
                              .seed = 1,
                              .model_options = model.settings().model_options,
                              .pool = &pool})),
        posterior(model, prior, {}),
        data(posterior.data(*task, 20)),
        density(posterior.density(data, *task, pool)) {}
};

// Every number has its own value, so that one that lies elsewhere after reading is seen.
TEST(ChainFile, KeepsEveryNumberOfAModelWithTwoNoises) {
  const Density of(network("ptychonn-64", {"window=32"}, 60));
  const Posterior& posterior = of.posterior;
  const auto scales = posterior.names_of_scales();
  ASSERT_EQ(scales.size(), 2U);
  ChainRecord record;
  const std::size_t size = posterior.size();
  const auto counted = [size](double from) {
    std::vector<double> values(size);
    for (std::size_t i = 0; i < size; ++i) values[i] = from + static_cast<double>(i) * 0x1p-20;
    return values;
  };
  record.state.position = counted(5), record.state.inverse_mass = counted(6);
  record.state.gathered_mean = counted(7), record.state.gathered_squares = counted(8);
  record.state.iteration = 3, record.state.step = 0.25, record.state.step_is_open = false,
  record.state.gathered = 9;
  record.state.averaging = {1.5, 2.5, 3.5, 4.5, 5.5};
  record.warm_up_seconds = 11, record.draw_seconds = 12;
  const auto held_out = of.data->held_out_indices.size();
  for (int i = 0; i < 3; ++i) {
    record.iterations.push_back({.log_density = i + 0.1,
                                 .energy = i + 0.2,
                                 .acceptance = i * 0.1,
                                 .step = i + 0.4,
                                 .evaluations = i + 5,
                                 .depth = i + 6,
                                 .divergent = i == 2,
                                 .warm_up = i == 0});
    if (i == 0) continue;
    const std::vector<double> likelihoods(held_out, i + 0.5);
    add_draw(record, counted(i), of.data->held_out_targets, likelihoods);
  }
  const ScratchFolder folder;
  const auto path = chain_file(folder / "", 0);
  write_chain(path, posterior, *of.data, record);
  const ChainRecord found = read_chain(path, posterior, *of.data).value();
  EXPECT_EQ(found.positions, record.positions);
  EXPECT_EQ(found.predictions, record.predictions);
  EXPECT_EQ(found.log_likelihoods, record.log_likelihoods);
  EXPECT_EQ(found.draws(), 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const sampling::Iteration &a = found.iterations[i], &b = record.iterations[i];
    EXPECT_EQ(std::tie(a.log_density, a.energy, a.acceptance, a.step, a.evaluations, a.depth, a.divergent,
                       a.warm_up),
              std::tie(b.log_density, b.energy, b.acceptance, b.step, b.evaluations, b.depth, b.divergent,
                       b.warm_up));
  }
  EXPECT_EQ(found.state.position, record.state.position);
  EXPECT_EQ(found.state.inverse_mass, record.state.inverse_mass);
  EXPECT_EQ(found.state.gathered_mean, record.state.gathered_mean);
  EXPECT_EQ(found.state.gathered_squares, record.state.gathered_squares);
  EXPECT_EQ(
      std::tie(found.state.iteration, found.state.step, found.state.step_is_open, found.state.gathered),
      std::tie(record.state.iteration, record.state.step, record.state.step_is_open, record.state.gathered));
  EXPECT_EQ(std::tie(found.warm_up_seconds, found.draw_seconds),
            std::tie(record.warm_up_seconds, record.draw_seconds));
  const auto arrays = data::read_npz(path);
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t d = 0; d < 2; ++d) {
      const auto logarithm = static_cast<double>(record.positions[d * size + size - 2 + s]);
      EXPECT_EQ(arrays.at("log/" + scales[s]).at(static_cast<std::int64_t>(d)), logarithm);
      EXPECT_EQ(arrays.at(scales[s]).at(static_cast<std::int64_t>(d)), std::exp(logarithm));
    }
}

double change_along(Density& of, const std::vector<double>& at, const std::vector<double>& direction,
                    double step) {
  std::vector<double> ahead = at, behind = at;
  for (std::size_t i = 0; i < at.size(); ++i)
    ahead[i] += step * direction[i], behind[i] -= step * direction[i];
  return (of.density->value(ahead) - of.density->value(behind)) / (2 * step);
}

TEST(Posteriors, HaveTheGradientsThatTheirValuesSay) {
  for (const TrainSettings& settings : {network("mcmc"), network("mlp", {}, 400),
                                        network("cifar10-cnn", {}, 24), network("wallmodel", {}, 300)}) {
    Density of(settings, {.deviation = 0.7, .fan_in = true});
    std::vector<double> at = of.posterior.start(*of.data, 0), gradient(at.size()), along(at.size());
    EXPECT_NEAR(of.density->evaluate(at, gradient), of.density->value(at),
                1e-4 * std::abs(of.density->value(at)));
    // Uphill, where rounding hides least; then along the noise alone.
    double slope = 0;
    for (const double g : gradient) slope += g * g;
    for (std::size_t i = 0; i < at.size(); ++i) along[i] = gradient[i] / std::sqrt(slope);
    const double step = 1e-2 / std::sqrt(std::sqrt(slope));
    EXPECT_NEAR(change_along(of, at, along, step) / std::sqrt(slope), 1, 0.02) << settings.workload;
    EXPECT_GT(std::abs(2 * std::sqrt(slope) / std::sqrt(slope) - 1), 0.02) << "another slope is seen";
    if (!of.posterior.likelihoods()[0].samples_scale()) continue;
    std::vector<double> noise_alone(at.size());
    noise_alone.back() = 1;
    at.back() += 0.3;
    of.density->evaluate(at, gradient);
    EXPECT_NEAR(change_along(of, at, noise_alone, 1e-2), gradient.back(),
                0.01 * std::abs(gradient.back()) + 0.1)
        << settings.workload;
  }
}

// Gradients in f32: the path comes back to where it began, and the energy's error is of second order, as far
// as rounding lets one see.
TEST(Posteriors, AreWalkedByLeapfrogs) {
  Density of(network("mcmc"));
  const std::vector<double> ones(of.posterior.size(), 1.0);
  sampling::PhasePoint start(of.posterior.size());
  start.position = of.posterior.start(*of.data, 0);
  RandomStream random(3);
  sampling::draw_momentum(random, ones, start.momentum);
  sampling::evaluate(*of.density, start);
  const auto error = [&](double step, int steps) {
    sampling::PhasePoint point = start;
    double largest = 0;
    for (int i = 0; i < steps; ++i) {
      sampling::leapfrog(*of.density, ones, step, point);
      largest = std::max(largest, std::abs(energy(point, ones) - energy(start, ones)));
    }
    return largest;
  };
  EXPECT_NEAR(error(0.004, 20) / error(0.002, 40), 4, 0.4);
  sampling::PhasePoint point = start;
  for (int i = 0; i < 50; ++i) sampling::leapfrog(*of.density, ones, 0.002, point);
  for (double& p : point.momentum) p = -p;
  for (int i = 0; i < 50; ++i) sampling::leapfrog(*of.density, ones, 0.002, point);
  for (std::size_t i = 0; i < of.posterior.size(); i += 97)
    EXPECT_NEAR(point.position[i], start.position[i], 1e-5) << i;
}

TEST(Posteriors, StartFromFirstWeightsOfTheirOwn) {
  Density of(network("mcmc"));
  EXPECT_EQ(of.posterior.size(), 2602U) << "2,601 parameters and the noise";
  EXPECT_EQ(of.posterior.names_of_scales(), (std::vector<std::string>{"noise"}));
  EXPECT_NE(of.posterior.start(*of.data, 0)[5], of.posterior.start(*of.data, 1)[5]);
  EXPECT_EQ(of.posterior.start(*of.data, 1), of.posterior.start(*of.data, 1));
  EXPECT_NEAR(of.posterior.start(*of.data, 0).back(), 0, 1e-6) << "returns are standardized";
}

TEST(Posteriors, AreOfLossesThatAreDensities) {
  for (const auto& [workload, words] : {std::pair("unet-64", "dice"), {"autophasenn", "of its own"}})
    expect_error(ErrorCode::unsupported, {words}, [&, name = workload] {
      const Model model(network(name));
      Posterior(model, {}, {});
    });
}

TEST(Priors, AreReadAndFallWithTheWidth) {
  EXPECT_EQ(prior_from_text("0.5").deviation, 0.5);
  EXPECT_TRUE(prior_from_text("fan-in").fan_in);
  EXPECT_EQ(to_string(prior_from_text("fan-in:2")), "fan-in:2");
  for (const char* wrong : {"", "x", "-1", "0", "nan", "fan-in:", "fan-in:-2", "1e999", "2,"})
    EXPECT_THROW(prior_from_text(wrong), Error) << wrong;
  const Density of(network("mcmc"), {.deviation = 3, .fan_in = true});
  const auto parameters = of.posterior.parameters();
  ASSERT_EQ(parameters.size(), 6U);
  EXPECT_NEAR(parameters[0].deviation, 3 / std::sqrt(22), 1e-12) << parameters[0].name;
  EXPECT_EQ(parameters[1].deviation, 3) << parameters[1].name;
  EXPECT_NEAR(parameters[4].deviation, 3 / std::sqrt(40), 1e-12) << parameters[4].name;
}

TEST(Summaries, SayWhatIsNotAsItShouldBe) {
  MethodSummary summary{.method = "nuts", .chains = 4, .draws = 100};
  summary.energy_information = 0.9;
  summary.of_parameters = {.numbers = 10, .agreed = 10, .worst_r_hat = 1.002, .least_bulk = 900};
  EXPECT_TRUE(summary.warnings().empty());
  summary.divergent = 3, summary.at_most_doublings = 7, summary.energy_information = 0.1;
  summary.of_parameters = {
      .numbers = 10, .agreed = 8, .worst_r_hat = 1.2, .least_bulk = 30, .least_tail = 20, .worst = "A[1]"};
  std::string all;
  for (const std::string& line : summary.warnings()) all += line + "\n";
  for (const char* words :
       {"3 of 400 transitions diverged", "7 of 400 paths were cut", "energy information 0.1",
        "r-hat of 2 of 10 parameters", "A[1]", "30 effective draws"})
    EXPECT_TRUE(contains(all, words)) << words;
}

// --- sliding windows

TEST(Windows, SlideAndGoOn) {
  const ScratchFolder folder;
  SampleSettings s;
  s.model = network("mcmc", {"units=2", "window=60"});
  s.warm_up = 60, s.draws = 30, s.chains = 2;
  s.windows = {.count = 4, .stride = 5, .warm_up = 30};
  const SampleReport whole = sample(s, folder / "whole", {});
  ASSERT_EQ(whole.windows.size(), 4U);
  EXPECT_EQ(whole.windows[3].first, 15);
  for (const WindowResult& window : whole.windows) EXPECT_LT(window.log_likelihood, 6) << window.first;
  s.windows.count = 2;
  sample(s, folder / "pieces", {});
  s.windows.count = 4;
  const SampleReport pieces = sample(s, folder / "pieces", {});
  for (std::size_t w = 0; w < 4; ++w)
    EXPECT_EQ(pieces.windows[w].log_likelihood, whole.windows[w].log_likelihood) << w;
  s.model = network("mlp");
  expect_error(ErrorCode::unsupported, {"no series"}, [&] { sample(s, {}, {}); });
}

// Of the logarithm of the noise: what a window begins with is what the last one drew, to the shrinkage.
TEST(Windows, TakeTheirVariancesFromTheDrawsOfTheLastOne) {
  const ScratchFolder folder;
  SampleSettings s;
  s.model = network("mcmc", {"units=2", "window=60"});
  s.methods = {"hmc"}, s.leapfrog_steps = 16;
  s.warm_up = 100, s.draws = 200, s.chains = 2;
  s.windows = {.count = 1, .stride = 5, .warm_up = 30};
  sample(s, folder / "out", {});
  const auto first = data::read_npz(folder / "out/window-0000/chain-1.npz");
  sampling::RunningVariance drawn(1);
  for (std::int64_t draw = 0; draw < s.draws; ++draw) {
    const double log_noise = std::log(first.at("noise").at(draw));
    drawn.add({&log_noise, 1});
  }
  s.windows.count = 2;
  sample(s, folder / "out", {});
  const auto second = data::read_npz(folder / "out/window-0001/chain-1.npz");
  const auto last_of = [](const Tensor& all) { return all.at(all.element_count() - 1); };
  const double variance = drawn.regularised()[0], before = last_of(first.at("state/inverse_mass"));
  EXPECT_NEAR(last_of(second.at("state/inverse_mass")), variance, 1e-4 * variance);
  EXPECT_GT(std::abs(before - variance), 1e-3 * variance);
}

}  // namespace
}  // namespace superstep::run
