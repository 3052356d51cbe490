// Training on files that are read meanwhile: the same bits as from memory, by any number of threads, killed
// and gone on with; and what is said of files that are damaged in the middle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "superstep/base/random.h"
#include "superstep/physics/generator.h"
#include "superstep/run/user/arrays.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/run/training_runs.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

namespace on = onnx::testing;
using test::expect_same_states;
using test::newest_checkpoint;

constexpr double no_memory = 1;  // byte: nothing is held

// y = x A and a model of the zoo, with a file of samples each.
struct Files {
  ScratchFolder folder;
  NamedTensors arrays{{"x", Tensor(ElementType::f32, {60, 4})},
                      {"target", Tensor(ElementType::f64, {60, 3})}};

  Files() {
    const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                               .inputs = {on::port("x", on::f32, {"N", "4"})},
                               .outputs = {on::port("y", on::f32, {"N", "3"})},
                               .initializers = {on::floats("A", {4, 3}, std::vector<float>(12, 0.5f))}};
    std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
    RandomStream random(7, 0, 0);
    for (auto& [name, tensor] : arrays)
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, random.uniform());
  }

  TrainSettings own(const char* name) {
    write_arrays(folder / name, arrays);
    return {.workload = (folder / "model.onnx").string(), .data = folder / name, .batch = 8, .epochs = 3};
  }

  TrainSettings zoo(const char* name, std::vector<std::string> options = {}) {
    ThreadPool pool(2);
    const data::GeneratorEntry& entry = data::find_generator(name);
    entry.make(Options(entry.options, options))
        ->write({.path = folder / "zoo.h5", .seed = 3, .samples = 60, .pool = &pool});
    return {.workload = name, .data = folder / "zoo.h5", .batch = 8, .replicas = 2, .epochs = 2};
  }

  Checkpoint trained(const TrainSettings& settings, const std::string& out, TrainOptions options = {}) {
    options.out = folder / out;
    train(settings, options);
    return newest_checkpoint(folder / out);
  }
};

TEST(ReadAsItGoes, GivesTheBitsOfMemoryByAnyNumberOfThreads) {
  Files files;
  int run = 0;
  for (const TrainSettings& settings :
       {files.own("a.h5"), files.own("a.npz"), files.own("a.safetensors"), files.zoo("braggnn")}) {
    const std::string out = std::to_string(run++);
    const Checkpoint held = files.trained(settings, out, {.data_memory = 1e9});
    // From nothing to as much as a few batches take: another number of batches ahead each.
    for (const auto& [threads, memory] :
         {std::pair(1, no_memory), {2, 300.0}, {7, 1000.0}, {16, no_memory}, {64, 700.0}}) {
      std::vector<std::string> said;
      const Checkpoint read = files.trained(settings, fmt::format("{}-{}", out, threads),
                                            {.data_memory = memory,
                                             .data_threads = threads,
                                             .tell = [&](const std::string& line) { said.push_back(line); }});
      expect_same_states(held, read);
      EXPECT_TRUE(std::ranges::any_of(said, [](const std::string& line) {
        return line.find("read while they are trained on") != std::string::npos;
      })) << threads;
    }
  }
}

TEST(ReadAsItGoes, GoesOnAtTheSameSample) {
  Files files;
  TrainSettings settings = files.own("a.h5");
  const Checkpoint whole = files.trained(settings, "whole", {.data_memory = 1e9});
  settings.steps = 7;  // within the second epoch
  files.trained(settings, "parts", {.data_memory = no_memory, .data_threads = 2});
  settings.steps = 0;
  expect_same_states(whole, files.trained(settings, "parts", {.resume = true, .data_memory = no_memory}));
}

TEST(ReadAsItGoes, WhatIsNoNumberIsToldWithItsRow) {
  Files files;
  files.arrays.at("x").set(4 * 9 + 2, std::numeric_limits<double>::quiet_NaN());
  const TrainSettings settings = files.own("a.h5");
  expect_error(ErrorCode::bad_file, {"a.h5", "data set 'x'", "nan at [9,2]", "--allow-nan"},
               [&] { train(settings, {.data_memory = no_memory}); });
}

// Cut short, or written to, in the middle of a training.
TEST(ReadAsItGoes, AFileThatChangesMeanwhileIsRefused) {
  Files files;
  TrainSettings settings = files.own("a.npz");
  settings.epochs = 400;
  int lines = 0;
  const auto change = [&](const std::string&) {
    if (++lines == 1)
      std::filesystem::resize_file(files.folder / "a.npz",
                                   std::filesystem::file_size(files.folder / "a.npz") - 9);
  };
  expect_error(ErrorCode::io, {"a.npz", "changed after it was opened"},
               [&] { train(settings, {.data_memory = no_memory, .tell = change}); });
}

}  // namespace
}  // namespace superstep::run
