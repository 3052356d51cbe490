// The commands of docs/your-own-model.md, in their order, on a model with the page's shapes.
#include <gtest/gtest.h>

#include "superstep/base/random.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/file/npy.h"
#include "superstep/file/npz.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace on = onnx::testing;

Tensor random_array(const Shape& shape, std::uint64_t seed) {
  Tensor tensor(ElementType::f32, shape);
  RandomStream random(seed);
  for (float& value : tensor.as<float>()) value = static_cast<float>(random.uniform(-1, 1));
  return tensor;
}

onnx::Message random_floats(const std::string& name, const Shape& shape) {
  const Tensor tensor = random_array(shape, shape.extents().size());
  const std::span<const float> values = tensor.as<float>();
  return on::floats(name, shape.extents(), {values.begin(), values.end()});
}

// Pictures x [N, 3, height, width] to y [N, 2]: a stem, a gain for each channel, a mean, a layer.
std::string model_of_the_page() {
  on::GraphParts parts;
  parts.inputs = {on::port("x", on::f32, {"N", "3", "height", "width"})};
  parts.outputs = {on::port("y", on::f32, {"N", "2"})};
  parts.nodes = {on::node("Conv", {"x", "stem.weight", "stem.bias"}, {"features"}),
                 on::node("Relu", {"features"}, {"bent"}),
                 on::node("Mul", {"bent", "gain"}, {"scaled"}),
                 on::node("GlobalAveragePool", {"scaled"}, {"means"}),
                 on::node("Flatten", {"means"}, {"rows"}),
                 on::node("Gemm", {"rows", "head.weight", "head.bias"}, {"y"})};
  parts.initializers = {random_floats("stem.weight", {4, 3, 3, 3}), random_floats("stem.bias", {4}),
                        random_floats("gain", {4, 1, 1}), random_floats("head.weight", {4, 2}),
                        random_floats("head.bias", {2})};
  return on::model_bytes(on::graph(parts));
}

// Boxes [300, 4] of a picture, of which those that begin right of zero come into question.
std::string detector_of_the_page() {
  on::GraphParts parts;
  parts.inputs = {on::port("boxes", on::f32, {"300", "4"})};
  parts.outputs = {on::port("found", on::f32, {"?", "4"})};
  parts.nodes = {on::node("Gather", {"boxes", "zero"}, {"first"}, {on::attribute("axis", 1)}),
                 on::node("Greater", {"first", "none"}, {"right"}),
                 on::node("NonZero", {"right"}, {"numbers"}),
                 on::node("Squeeze", {"numbers", "front"}, {"picks"}),
                 on::node("Gather", {"boxes", "picks"}, {"rows"}),
                 on::node("Gather", {"first", "picks"}, {"best"}),
                 on::node("Unsqueeze", {"rows", "front"}, {"picture"}),
                 on::node("Unsqueeze", {"best", "two_fronts"}, {"scores"}),
                 on::node("NonMaxSuppression", {"picture", "scores", "most", "overlap"}, {"kept"}),
                 on::node("Gather", {"kept", "two"}, {"of_rows"}, {on::attribute("axis", 1)}),
                 on::node("Gather", {"rows", "of_rows"}, {"found"})};
  parts.initializers = {on::integers("zero", {}, {0}),     on::integers("two", {}, {2}),
                        on::integers("front", {1}, {0}),   on::integers("two_fronts", {2}, {0, 1}),
                        on::integers("most", {1}, {50}),   on::floats("none", {}, {0}),
                        on::floats("overlap", {1}, {0.5F})};
  return on::model_bytes(on::graph(parts));
}

// The loss of each sample: weight * log(1 + mean (x w - truth)^2).
std::string robust_model_of_the_page() {
  on::GraphParts parts;
  parts.inputs = {on::port("x", on::f32, {"N", "4"}), on::port("truth", on::f32, {"N", "2"}),
                  on::port("weight", on::f32, {"N"})};
  parts.outputs = {on::port("found", on::f32, {"N", "2"}), on::port("loss", on::f32, {"N"})};
  parts.nodes = {
      on::node("MatMul", {"x", "w"}, {"found"}),
      on::node("Sub", {"found", "truth"}, {"away"}),
      on::node("Mul", {"away", "away"}, {"squares"}),
      on::node("ReduceMean", {"squares"}, {"means"},
               {on::attribute("axes", std::vector<std::int64_t>{1}), on::attribute("keepdims", 0)}),
      on::node("Add", {"means", "one"}, {"sums"}),
      on::node("Log", {"sums"}, {"logarithms"}),
      on::node("Mul", {"weight", "logarithms"}, {"loss"})};
  parts.initializers = {random_floats("w", {4, 2}), on::floats("one", {}, {1})};
  return on::model_bytes(on::graph(parts));
}

// Rows [N, 5] to the score of one fault.
std::string detector_of_faults() {
  on::GraphParts parts;
  parts.inputs = {on::port("x", on::f32, {"N", "5"})};
  parts.outputs = {on::port("fault", on::f32, {"N", "1"})};
  parts.nodes = {on::node("MatMul", {"x", "w"}, {"fault"})};
  parts.initializers = {random_floats("w", {5, 1})};
  return on::model_bytes(on::graph(parts));
}

// Rows [N, 4] three times, to [N, 2] by the same layer.
std::string twins_of_the_page() {
  on::GraphParts parts;
  for (const char* name : {"anchor", "like", "unlike"}) {
    parts.inputs.push_back(on::port(std::string("x.") + name, on::f32, {"N", "4"}));
    parts.outputs.push_back(on::port(name, on::f32, {"N", "2"}));
    parts.nodes.push_back(on::node("MatMul", {std::string("x.") + name, "w"}, {name}));
  }
  parts.initializers = {random_floats("w", {4, 2})};
  return on::model_bytes(on::graph(parts));
}

// Frames [N, 9, 4] to scores [N, 9, 5].
std::string frames_of_the_page() {
  on::GraphParts parts;
  parts.inputs = {on::port("x", on::f32, {"N", "9", "4"})};
  parts.outputs = {on::port("scores", on::f32, {"N", "9", "5"})};
  parts.nodes = {on::node("MatMul", {"x", "w"}, {"scores"})};
  parts.initializers = {random_floats("w", {4, 5})};
  return on::model_bytes(on::graph(parts));
}

void write_files_of_sequences(const ScratchFolder& folder) {
  std::ofstream(folder / "twins.onnx", std::ios::binary) << twins_of_the_page();
  std::ofstream(folder / "frames.onnx", std::ios::binary) << frames_of_the_page();
  data::write_npz(folder / "triplets.npz", {{"x.anchor", random_array({40, 4}, 7)},
                                            {"x.like", random_array({40, 4}, 8)},
                                            {"x.unlike", random_array({40, 4}, 9)}});
  Tensor labels(ElementType::i64, {40, 3}), counts(ElementType::i64, {40});
  for (std::int64_t i = 0; i < 40; ++i) {
    counts.set(i, static_cast<double>(i % 4));
    for (std::int64_t k = 0; k < 3; ++k) labels.set(3 * i + k, static_cast<double>(1 + (i + k) % 4));
  }
  data::write_npz(folder / "sequences.npz",
                  {{"x", random_array({40, 9, 4}, 10)}, {"target", labels}, {"counts", counts}});
}

Tensor yes_or_no(const Shape& shape) {
  Tensor tensor(ElementType::f32, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, i % 3 == 0 ? 0 : 1);
  return tensor;
}

TEST(LossesPage, ItsCommandsWork) {
  const ScratchFolder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary) << model_of_the_page();
  std::ofstream(folder / "faults.onnx", std::ios::binary) << detector_of_faults();
  const Tensor x = random_array({40, 3, 8, 8}, 1), y = random_array({40, 2}, 2);
  data::Hdf5Writer pairs(folder / "pairs.h5");
  pairs.write("x", x);
  pairs.write("target", y);
  pairs.close();
  data::write_npz(folder / "named.npz", {{"x", x}, {"target.y", y}});
  data::write_npz(folder / "trusted.npz",
                  {{"x", x}, {"target", y}, {"trust", yes_or_no({40})}, {"valid", yes_or_no({40, 2})}});
  data::write_npz(folder / "faults.npz", {{"x", random_array({40, 5}, 3)}, {"target", yes_or_no({40, 1})}});
  write_files_of_sequences(folder);
  const auto commands = commands_of(content_of(SUPERSTEP_SOURCE "/docs/losses.md"));
  EXPECT_GE(commands.size(), 7U);
  std::string said;
  for (const std::string& command : commands) {
    const Outcome outcome = run_program(folder / "", command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
    said += outcome.output;
  }
  for (const char* metric : {"r2", "f1", "auc", "triplet_margin", "label_error"})
    EXPECT_TRUE(contains(said, metric)) << metric << '\n' << said;
}

TEST(LossesPage, LabelsAndLengthsThatDoNotFitAreNamed) {
  const ScratchFolder folder;
  write_files_of_sequences(folder);
  const auto refused = [&](const std::string& data, const std::string& loss, const char* why) {
    const Outcome outcome = run_program(
        folder / "", "train frames.onnx --no-out --steps 2 --data " + data + " --loss '" + loss + "'");
    EXPECT_EQ(outcome.code, 1) << loss << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, why)) << loss << outcome.errors;
  };
  const auto with = [&](const char* file, std::int64_t label, std::int64_t count) {
    data::write_npz(folder / file, {{"x", random_array({2, 9, 4}, 10)},
                                    {"target", Tensor::from<std::int64_t>({2, 3}, {1, 2, label, 1, -1, -1})},
                                    {"counts", Tensor::from<std::int64_t>({2}, {3, count})}});
  };
  with("label.npz", 5, 1), with("count.npz", 3, 4);
  refused("label.npz", "ctc", "element 2 is 5, but the model tells 5 classes apart: 0 to 4");
  refused("count.npz", "ctc(target_lengths=counts)", "element 1 is 4, but a length is 0 to 3");
  refused("count.npz", "ctc(target_lengths=lengths)", "has no array 'lengths'");
  // Nine frames hold no three labels where only two count.
  data::write_npz(folder / "short.npz", {{"x", random_array({2, 9, 4}, 10)},
                                         {"target", Tensor::from<std::int64_t>({2, 3}, {1, 2, 3, 1, 2, 3})},
                                         {"frames", Tensor::from<std::int64_t>({2}, {2, 9})}});
  refused("short.npz", "ctc(input_lengths=frames)", "zero_infinity=true");
  const Outcome left_out = run_program(folder / "",
                                       "train frames.onnx --no-out --steps 2 --data short.npz --loss "
                                       "'ctc(input_lengths=frames,zero_infinity=true)'");
  EXPECT_EQ(left_out.code, 0) << left_out.errors;
}

TEST(LossesPage, WhatDoesNotFitIsRefusedFirst) {
  const ScratchFolder folder;
  std::ofstream(folder / "faults.onnx", std::ios::binary) << detector_of_faults();
  data::write_npz(folder / "faults.npz", {{"x", random_array({40, 5}, 3)}, {"target", yes_or_no({40, 1})}});
  const auto refused = [&](const std::string& options, int code, const char* why) {
    const Outcome outcome =
        run_program(folder / "", "train faults.onnx --data faults.npz --no-out " + options);
    EXPECT_EQ(outcome.code, code) << options << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, why)) << options << outcome.errors;
  };
  refused("--loss bce_with_logits --metrics r2", 2, "'r2' is no metric of what this loss compares");
  refused("--loss bce_with_logits --metrics f1:y", 2, "the model has no such output");
  refused("--loss 'mse(sample_weights=trust)'", 1, "has no array 'trust'");
  refused("--loss 'focal(gama=1)'", 2, "did you mean 'gamma'");
  const Outcome zoo = run_program(folder / "", "train mlp --metrics r2 --no-out");
  EXPECT_EQ(zoo.code, 2);
  EXPECT_TRUE(contains(zoo.errors, "--metrics")) << zoo.errors;
}

TEST(OwnModelPage, ItsCommandsWork) {
  const ScratchFolder folder;
  std::ofstream(folder / "model.onnx", std::ios::binary) << model_of_the_page();
  std::ofstream(folder / "detector.onnx", std::ios::binary) << detector_of_the_page();
  std::ofstream(folder / "robust.onnx", std::ios::binary) << robust_model_of_the_page();
  data::write_npz(folder / "weighted.npz", {{"x", random_array({40, 4}, 4)},
                                            {"truth", random_array({40, 2}, 5)},
                                            {"weight", random_array({40}, 6)}});
  data::write_npy(folder / "picture.npy", random_array({300, 4}, 3));
  const Tensor x = random_array({40, 3, 32, 32}, 1);
  data::write_npy(folder / "x.npy", x);
  data::Hdf5Writer pairs(folder / "pairs.h5");
  pairs.write("x", x);
  pairs.write("target", random_array({40, 2}, 2));
  pairs.close();
  const auto commands = commands_of(content_of(SUPERSTEP_SOURCE "/docs/your-own-model.md"));
  EXPECT_GE(commands.size(), 6U);
  std::string said;
  for (const std::string& command : commands) {
    const Outcome outcome = run_program(folder / "", command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
    said += outcome.output + outcome.errors;
  }
  for (const char* words : {"trained: 4 of 5 initializers, 122 values; not: gain",
                            "trained: 3 of 5 initializers, 14 values; not: stem.weight, stem.bias"})
    EXPECT_TRUE(contains(said, words)) << words << '\n' << said;
}

}  // namespace
}  // namespace superstep
