// Wrong calls are refused before their work: options, then names and forms, then memory. Seen by what would
// be met otherwise: more samples than fit, a file that is not there, arrays that take as long to read as
// memory is large.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "superstep/base/system/free_memory.h"
#include "superstep/file/hdf5/hdf5.h"
#include "superstep/run/model.h"
#include "superstep/run/train/train.h"
#include "tests/expect_error.h"
#include "tests/onnx/proto_builder.h"
#include "tests/scratch.h"

namespace superstep::run {
namespace {

constexpr std::int64_t more_than_fit = std::int64_t{1} << 50;

TEST(RefusedFirst, OptionsOfTheModelBeforeDataAreMade) {
  ThreadPool pool(1);
  const auto open = [&](const std::string& workload, const std::string& option,
                        const std::filesystem::path& data) {
    const Model model({.workload = workload, .model_options = {option}});
    model.open_task({.data = data,
                     .samples = more_than_fit,
                     .seed = 1,
                     .model_options = model.settings().model_options,
                     .labels_required = true,
                     .pool = &pool});
  };
  for (const auto& [workload, option] :
       {std::pair("unet-64", "width=nan"), std::pair("gpt2", "heads=7"), std::pair("braggnn", "patch=nan"),
        std::pair("llama", "rope-scaling=yarn:4")})
    for (const char* data : {"", "not-there.h5"})
      expect_error(ErrorCode::invalid_argument, {}, [&] { open(workload, option, data); });
}

TEST(RefusedFirst, AShareOfValidationBeforeDataAreMade) {
  expect_error(ErrorCode::invalid_argument, {"--validate", "'most'"},
               [] { train({.workload = "mlp", .samples = more_than_fit}, {.validate = "most"}); });
}

// Two arrays that fit one by one, and not together: where they are to be in memory, they are refused; else
// they are read as they are trained on.
TEST(RefusedFirst, MemoryOfAllArraysBeforeTheFirstIsRead) {
  const double available = available_memory();
  if (available <= 0) GTEST_SKIP() << "nobody knows how much memory there is";
  const ScratchFolder folder;
  const std::int64_t pixels = 128 * 128;
  const auto count = static_cast<std::int64_t>(0.6 * available / 4 / static_cast<double>(pixels));
  {
    data::Hdf5Writer file(folder / "scan.h5");
    const data::Layout unwritten{.extendable = true, .chunk_rows = 1};
    for (const char* name : {"diff", "phase"})
      file.create(name, ElementType::f32, {count, 128, 128}, unwritten);
    file.create("scan", ElementType::i32, {count}, {.extendable = true, .chunk_rows = 1 << 16});
    file.close();
  }
  ThreadPool pool(1);
  const Model model({.workload = "ptychonn-128"});
  TaskSettings settings{.data = folder / "scan.h5",
                        .seed = 1,
                        .model_options = model.settings().model_options,
                        .labels_required = true,
                        .pool = &pool,
                        .data_memory = 1e18};
  expect_error(ErrorCode::out_of_memory, {"scan.h5"}, [&] { model.open_task(settings); });
  settings.data_memory = 0;
  EXPECT_TRUE(model.open_task(settings)->reads_as_it_goes());
}

namespace on = onnx::testing;

// y = x A, trained on arrays in a file.
struct OwnModel {
  ScratchFolder folder;
  OwnModel() {
    const std::vector<float> weights(12, 0.5f);
    const on::GraphParts parts{.nodes = {on::node("MatMul", {"x", "A"}, {"y"})},
                               .inputs = {on::port("x", on::f32, {"N", "4"})},
                               .outputs = {on::port("y", on::f32, {"N", "3"})},
                               .initializers = {on::floats("A", {4, 3}, weights)}};
    std::ofstream(folder / "model.onnx", std::ios::binary) << on::model_bytes(on::graph(parts));
  }
  TrainReport trained(const NamedTensors& arrays, const char* name = "data.npz", bool allow_nan = false) {
    write_arrays(folder / name, arrays);
    return train({.workload = (folder / "model.onnx").string(),
                  .data = folder / name,
                  .allow_nan = allow_nan,
                  .batch = 4,
                  .steps = 1},
                 {});
  }
};

TEST(RefusedFirst, NumbersThatAreNoneInTrainingArrays) {
  OwnModel own;
  Tensor x = Tensor::full(ElementType::f32, {20, 4}, 1);
  const Tensor target = Tensor::full(ElementType::f32, {20, 3}, 1);
  EXPECT_EQ(own.trained({{"x", x}, {"target", target}}).steps, 1);
  x.set(9, std::numeric_limits<double>::quiet_NaN());
  x.set(70, std::numeric_limits<double>::infinity());
  expect_error(ErrorCode::bad_file, {"array 'x'", "nan at [2,1]", "first of 2", "--allow-nan"}, [&] {
    own.trained({{"x", x}, {"target", target}});
  });
  expect_error(ErrorCode::bad_file, {"array 'target'", "at [2,0]"}, [&] {
    Tensor bad = target;
    bad.set(6, std::numeric_limits<double>::infinity());
    own.trained({{"x", Tensor::full(ElementType::f32, {20, 4}, 1)}, {"target", bad}});
  });
  expect_error(ErrorCode::diverged, {"loss"}, [&] {
    own.trained({{"x", x}, {"target", target}}, "data.npz", true);
  });
}

// An array of the right size under another name is another array.
TEST(RefusedFirst, TheOnlyArrayIsTheInputWhereArraysHaveNoNames) {
  OwnModel own;
  const Tensor x = Tensor::full(ElementType::f32, {20, 4}, 1);
  const auto open = [&](const char* name) {
    write_arrays(own.folder / name, {{"mask", x}});
    const UserModel model({.file = own.folder / "model.onnx", .data = own.folder / name});
    ThreadPool pool(1);
    return model
        .open_task({.data = own.folder / name,
                    .seed = 1,
                    .model_options = {},
                    .labels_required = false,
                    .pool = &pool})
        ->size();
  };
  EXPECT_EQ(open("x.npy"), 20);
  for (const char* name : {"x.npz", "x.h5", "x.safetensors"})
    expect_error(ErrorCode::bad_file, {name, "no array 'x'", "'mask'"}, [&] { open(name); });
}

TEST(RefusedFirst, OptionsOfModelFilesBesideAWorkload) {
  for (const auto& [settings, option] :
       {std::pair(TrainSettings{.workload = "mlp", .shapes = {"x=1"}}, "--shape"),
        std::pair(TrainSettings{.workload = "mlp", .loss = "l1"}, "--loss"),
        std::pair(TrainSettings{.workload = "mlp", .allow_nan = true}, "--allow-nan")})
    expect_error(ErrorCode::invalid_argument, {option, "model file"}, [&] { Model{settings}; });
}

}  // namespace
}  // namespace superstep::run
