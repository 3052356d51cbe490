// Answers that are refined on their sample alone, through the loss that the network learnt by.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "superstep/base/random.h"
#include "superstep/base/system/interrupt.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/serve/refine.h"
#include "superstep/workload/xray/autophasenn/autophasenn.h"
#include "tests/expect_error.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

constexpr std::int64_t side = 16, half = side / 2, voxels = half * half * half;
const std::vector<std::string> small{"size=16", "width=2"};

// Crystals without noise in patterns of 16^3, and the step that refines one.
class Refining : public ::testing::Test {
 protected:
  Refining()
      : task_(
            model_.open_task({.data = {}, .samples = 3, .seed = 4, .model_options = small, .pool = &pool_})),
        fields_(workload::generated_fields(
            *workload::make_generator("autophasenn",
                                      std::vector<std::string>{"size=16", "diameter=0.4..0.75"}),
            {.samples = 3, .seed = 4, .pool = &pool_}, 3)) {}
  ~Refining() override { clear_interrupt(); }

  // amp and phase of a crystal, as the model's outputs.
  std::vector<Tensor> truth(std::int64_t sample) const {
    std::vector<Tensor> outputs;
    for (const char* name : {"amp", "phase"}) {
      outputs.emplace_back(ElementType::f32, Shape{1, 1, half, half, half});
      std::ranges::copy(fields_.at(name).as<float>().subspan(static_cast<std::size_t>(sample * voxels),
                                                             static_cast<std::size_t>(voxels)),
                        outputs.back().as<float>().begin());
    }
    return outputs;
  }
  // The true support, worn to 0.7 of its amplitude, with phases of a tenth of the truth: a good answer.
  std::vector<Tensor> near(std::int64_t sample) const {
    std::vector<Tensor> outputs = truth(sample);
    for (float& value : outputs[0].as<float>()) value *= 0.7f;
    for (float& value : outputs[1].as<float>()) value *= 0.1f;
    return outputs;
  }
  std::vector<Tensor> random(std::uint64_t seed) const {
    std::vector<Tensor> outputs = truth(0);
    RandomStream stream(seed);
    for (float& value : outputs[0].as<float>()) value = static_cast<float>(stream.uniform());
    for (float& value : outputs[1].as<float>()) value = static_cast<float>(stream.uniform(-3, 3));
    return outputs;
  }
  Refiner refiner(std::int64_t steps) {
    return {model_, target::find_target("cpu"), {.steps = steps, .learning_rate = 0.1, .threads = 1}};
  }
  std::vector<double> losses(Refiner& refiner, std::int64_t sample, std::vector<Tensor>& outputs) {
    std::vector<Tensor> inputs = refiner.inputs();
    task_->fill_inputs({&sample, 1}, inputs, pool_);
    return refiner.refine(inputs, outputs);
  }
  double overlap(std::int64_t sample, std::span<const Tensor> outputs) const {
    return workload::crystal_quality(fields_, sample, workload::predicted_crystal(outputs, 0)).iou;
  }

  ThreadPool pool_{1};
  Model model_{{.workload = "autophasenn", .model_options = small}};
  std::unique_ptr<Task> task_;
  workload::Fields fields_;
};

TEST_F(Refining, BringsAGoodAnswerNearerToItsPattern) {
  Refiner steps = refiner(60);
  for (std::int64_t sample = 0; sample < 3; ++sample) {
    std::vector<Tensor> outputs = near(sample);
    const auto course = losses(steps, sample, outputs);
    ASSERT_EQ(course.size(), 61U);
    EXPECT_LT(course.back(), 0.5 * course.front()) << sample;
    EXPECT_GT(overlap(sample, outputs), 0.8) << sample;
  }
}

// The last loss is that of the answer that is returned, as quality measures it.
TEST_F(Refining, ReturnsWhatItsLastLossIsOf) {
  Refiner steps = refiner(20);
  std::vector<Tensor> outputs = near(1);
  const auto course = losses(steps, 1, outputs);
  EXPECT_NEAR(workload::crystal_quality(fields_, 1, workload::predicted_crystal(outputs, 0)).diffraction_l1,
              course.back(), 1e-3 * course.back());
}

// The controls: from random numbers, and inside a support that is another crystal's corner.
TEST_F(Refining, IsWorseFromRandomNumbersAndInAWrongSupport) {
  Refiner steps = refiner(60);
  for (std::int64_t sample = 0; sample < 3; ++sample) {
    std::vector<Tensor> good = near(sample), drawn = random(9), cornered = near(sample);
    for (std::int64_t i = 0; i < voxels; ++i)
      if (i / (half * half) > 2 || i / half % half > 2) cornered[0].set(i, 0);
    for (std::int64_t i = 0; i < half; ++i) cornered[0].set(i, 0.7);
    const double right = losses(steps, sample, good).back();
    EXPECT_GT(losses(steps, sample, drawn).back(), 1.5 * right) << sample;
    EXPECT_GT(losses(steps, sample, cornered).back(), 1.3 * right) << sample;
    EXPECT_GT(overlap(sample, good), overlap(sample, cornered)) << sample;
  }
}

TEST_F(Refining, ForgetsTheSampleBefore) {
  Refiner steps = refiner(8), fresh = refiner(8);
  std::vector<Tensor> first = near(0), second = near(1), alone = near(1);
  losses(steps, 0, first);
  EXPECT_EQ(losses(steps, 1, second), losses(fresh, 1, alone));
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(std::ranges::equal(second[i].as<float>(), alone[i].as<float>()));
}

TEST_F(Refining, RefinesAllSamplesInTheirPlaces) {
  Refiner steps = refiner(8);
  std::vector<Tensor> outputs;
  for (int i = 0; i < 2; ++i) outputs.emplace_back(ElementType::f32, Shape{3, 1, half, half, half});
  for (std::int64_t sample = 0; sample < 3; ++sample)
    for (std::size_t i = 0; i < 2; ++i)
      std::ranges::copy(near(sample)[i].as<float>(),
                        outputs[i].as<float>().begin() + static_cast<std::ptrdiff_t>(sample * voxels));
  EXPECT_GT(refine_all(steps, *task_, outputs, pool_), 0);
  for (const std::int64_t sample : {0, 2}) {
    std::vector<Tensor> alone = near(sample);
    losses(steps, sample, alone);
    for (std::size_t i = 0; i < 2; ++i)
      EXPECT_TRUE(std::ranges::equal(alone[i].as<float>(),
                                     outputs[i].as<float>().subspan(static_cast<std::size_t>(sample * voxels),
                                                                    static_cast<std::size_t>(voxels))))
          << sample << ' ' << i;
  }
  request_interrupt();
  EXPECT_THROW(refine_all(steps, *task_, outputs, pool_), Error);
}

TEST_F(Refining, IsRefusedWhereALossNeedsLabels) {
  expect_error(ErrorCode::unsupported, {"mlp", "needs labels"},
               [] { Refiner(Model({.workload = "mlp"}), target::find_target("cpu"), {}); });
  expect_error(ErrorCode::invalid_argument, {"--refine", "needs labels"},
               [] { infer({.workload = "mlp", .samples = 4, .refine = 3}); });
  expect_error(ErrorCode::invalid_argument, {"--refine", "derivative"},
               [] { infer({.workload = "autophasenn", .precision = "int8", .samples = 1, .refine = 3}); });
}

// A pattern with a hole is named by its sample and place, before anything is done with it.
TEST_F(Refining, NamesAPatternThatIsNotFinite) {
  const ScratchFolder folder;
  Tensor diff = fields_.at("diff").clone();
  diff.set(side * side * side + 77, NAN);
  data::Hdf5Writer file(folder / "crystals.h5");
  file.write("diff", diff);
  file.write("amp", fields_.at("amp"));
  file.write("phase", fields_.at("phase"));
  file.close();
  expect_error(ErrorCode::bad_file, {"crystals.h5: data set 'diff'", "nan at [1,0,"}, [&] {
    model_.open_task({.data = folder / "crystals.h5", .model_options = small, .pool = &pool_});
  });
}

}  // namespace
}  // namespace superstep::run
