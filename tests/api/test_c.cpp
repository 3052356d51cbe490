// The C interface: tensors of the caller with any strides, errors as values, callbacks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "superstep/c_api.h"
#include "tests/keep_written.h"

namespace {

struct Handles {
  ~Handles() {
    superstep_trainer_free(trainer);
    superstep_session_free(session);
    superstep_model_free(model);
  }
  superstep_model* model = nullptr;
  superstep_session* session = nullptr;
  superstep_trainer* trainer = nullptr;
};

std::string last_words() {
  const superstep_error error = superstep_last_error();
  return std::string(error.where) + ": " + error.message;
}

void expect_refused(superstep_status status, superstep_status expected, const std::string& words) {
  EXPECT_EQ(status, expected);
  EXPECT_EQ(superstep_last_error().status, expected);
  EXPECT_NE(last_words().find(words), std::string::npos) << last_words();
}

class CApi : public ::testing::Test {
 protected:
  void open(const char* what, std::int64_t batch) {
    ASSERT_EQ(superstep_model_open(what, nullptr, &handles_.model), SUPERSTEP_OK) << last_words();
    settings_.batch = batch;
    settings_.threads = 1;
    ASSERT_EQ(superstep_session_create(handles_.model, &settings_, &handles_.session), SUPERSTEP_OK)
        << last_words();
  }
  superstep_status run(const superstep_tensor& input, const superstep_tensor& output) {
    return superstep_session_run(handles_.session, &input, 1, &output, 1);
  }

  Handles handles_;
  superstep_compile_settings settings_ = SUPERSTEP_COMPILE_SETTINGS_INIT;
};

TEST_F(CApi, TakesBoundsAndNamesOfWhatIsTrained) {
  const char* bounds[] = {"*=2", nullptr};
  superstep_model_settings settings = SUPERSTEP_MODEL_SETTINGS_INIT;
  settings.bounds = bounds;
  ASSERT_EQ(superstep_model_open(DETECTOR_FILE, &settings, &handles_.model), SUPERSTEP_OK) << last_words();
  settings_.threads = 1;
  ASSERT_EQ(superstep_session_create(handles_.model, &settings_, &handles_.session), SUPERSTEP_OK)
      << last_words();
  const superstep_port* ports = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(superstep_session_outputs(handles_.session, &ports, &count), SUPERSTEP_OK);
  bool counted = false;
  for (std::size_t i = 0; i < count; ++i) counted |= std::string(ports[i].name) == "beyond_bounds";
  EXPECT_TRUE(counted);
}

TEST_F(CApi, PortsAreArraysThatLiveAsLongAsTheHandle) {
  open("braggnn", 4);
  const superstep_port* ports = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(superstep_session_inputs(handles_.session, &ports, &count), SUPERSTEP_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_STREQ(ports[0].name, "patch");
  EXPECT_EQ(ports[0].element, SUPERSTEP_F32);
  ASSERT_EQ(ports[0].rank, 4);
  EXPECT_EQ(ports[0].shape[0], 4);
  ASSERT_EQ(superstep_model_targets(handles_.model, 7, &ports, &count), SUPERSTEP_OK);
  EXPECT_EQ(ports[0].shape[0], 7);
  ASSERT_EQ(superstep_model_parameters(handles_.model, &ports, &count), SUPERSTEP_OK);
  EXPECT_GT(count, 10u);
}

// Row-major, transposed, reversed, repeated: the caller's memory is read and written as its strides say.
TEST_F(CApi, StridesAreFollowedInAndOut) {
  constexpr std::int64_t rows = 5, columns = 16;
  open("mlp", rows);
  std::vector<float> plain(rows * columns), turned(rows * columns), backwards(rows * columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float value = std::sin(static_cast<float>(i * columns + j));
      plain[static_cast<std::size_t>(i * columns + j)] = value;
      turned[static_cast<std::size_t>(j * rows + i)] = value;
      backwards[static_cast<std::size_t>((rows - 1 - i) * columns + j)] = value;
    }
  const std::int64_t shape[] = {rows, columns}, result_shape[] = {rows, 1};
  const std::int64_t by_columns[] = {1, rows}, from_the_end[] = {-columns, 1}, every_third[] = {3, 1};
  std::vector<float> expected(rows), found(rows), spread(3 * rows, -1.f);
  superstep_tensor result{nullptr, SUPERSTEP_F32, 2, result_shape, nullptr, expected.data()};
  ASSERT_EQ(run({nullptr, SUPERSTEP_F32, 2, shape, nullptr, plain.data()}, result), SUPERSTEP_OK)
      << last_words();
  EXPECT_NE(expected[0], expected[1]);

  result.data = found.data();
  ASSERT_EQ(run({nullptr, SUPERSTEP_F32, 2, shape, by_columns, turned.data()}, result), SUPERSTEP_OK);
  EXPECT_EQ(found, expected);
  ASSERT_EQ(run({nullptr, SUPERSTEP_F32, 2, shape, from_the_end, &backwards[(rows - 1) * columns]}, result),
            SUPERSTEP_OK);
  EXPECT_EQ(found, expected);
  result.data = spread.data();
  result.strides = every_third;
  ASSERT_EQ(run({nullptr, SUPERSTEP_F32, 2, shape, nullptr, plain.data()}, result), SUPERSTEP_OK);
  for (std::size_t i = 0; i < spread.size(); ++i)
    EXPECT_EQ(spread[i], i % 3 == 0 ? expected[i / 3] : -1.f) << i;
}

TEST_F(CApi, RowMajorOutputsAreWrittenInPlace) {
  open("mlp", 2);
  const std::int64_t shape[] = {2, 16}, result_shape[] = {2, 1};
  std::vector<float> input(32, 0.5f), memory(4, -7.f);
  ASSERT_EQ(run({nullptr, SUPERSTEP_F32, 2, shape, nullptr, input.data()},
                {nullptr, SUPERSTEP_F32, 2, result_shape, nullptr, &memory[1]}),
            SUPERSTEP_OK);
  EXPECT_EQ(memory[0], -7.f);
  EXPECT_EQ(memory[1], memory[2]);
  EXPECT_NE(memory[1], -7.f);
  EXPECT_EQ(memory[3], -7.f);
}

TEST_F(CApi, WrongCallsAreRefusedInWords) {
  expect_refused(superstep_model_open("bragnn", nullptr, &handles_.model), SUPERSTEP_INVALID_ARGUMENT,
                 "bragnn");
  EXPECT_NE(std::string(superstep_last_error().hint).find("braggnn"), std::string::npos);
  EXPECT_EQ(handles_.model, nullptr);
  expect_refused(superstep_model_open("none.onnx", nullptr, &handles_.model), SUPERSTEP_NOT_FOUND,
                 "none.onnx");
  expect_refused(superstep_model_open(nullptr, nullptr, &handles_.model), SUPERSTEP_INVALID_ARGUMENT, "what");
  open("mlp", 2);
  std::vector<float> input(33), output(2);
  const std::int64_t shape[] = {2, 16}, result_shape[] = {2, 1};
  superstep_tensor in{nullptr, SUPERSTEP_F32, 2, shape, nullptr, input.data()};
  superstep_tensor out{nullptr, SUPERSTEP_F32, 2, result_shape, nullptr, output.data()};
  ASSERT_EQ(run(in, out), SUPERSTEP_OK);
  const auto refused = [&](superstep_tensor input_as, superstep_tensor output_as, const std::string& words) {
    expect_refused(run(input_as, output_as), SUPERSTEP_INVALID_ARGUMENT, words);
  };
  superstep_tensor wrong = in;
  wrong.rank = 1;
  refused(wrong, out, "f32[2]");
  wrong.rank = -1;
  refused(wrong, out, "rank of -1");
  wrong = in;
  wrong.element = SUPERSTEP_F64;
  refused(wrong, out, "f64");
  wrong.element = static_cast<superstep_element>(99);
  refused(wrong, out, "99");
  wrong = in;
  wrong.data = nullptr;
  refused(wrong, out, "null pointer");
  wrong.data = reinterpret_cast<char*>(input.data()) + 1;
  refused(wrong, out, "aligned");
  wrong = in;
  wrong.name = "nonesuch";
  refused(wrong, out, "nonesuch");
  wrong = out;
  wrong.shape = shape;
  refused(in, wrong, "f32[2,16]");
  expect_refused(superstep_session_run(handles_.session, nullptr, 0, &out, 1), SUPERSTEP_INVALID_ARGUMENT,
                 "no value is given");
  superstep_compile_settings settings = SUPERSTEP_COMPILE_SETTINGS_INIT;
  settings.size = 3;
  superstep_session* session = nullptr;
  expect_refused(superstep_session_create(handles_.model, &settings, &session), SUPERSTEP_INVALID_ARGUMENT,
                 "superstep_compile_settings");
  EXPECT_EQ(session, nullptr);
}

// A program that was built when the structure had fewer fields gives a smaller size: the rest is as if not
// given.
TEST_F(CApi, SettingsOfAnOlderHeaderAreTaken) {
  ASSERT_EQ(superstep_model_open("mlp", nullptr, &handles_.model), SUPERSTEP_OK);
  settings_.batch = 3;
  settings_.precision = "nothing of the kind";
  settings_.size = offsetof(superstep_compile_settings, precision);
  ASSERT_EQ(superstep_session_create(handles_.model, &settings_, &handles_.session), SUPERSTEP_OK)
      << last_words();
  const superstep_port* ports = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(superstep_session_inputs(handles_.session, &ports, &count), SUPERSTEP_OK);
  EXPECT_EQ(ports[0].shape[0], 3);
}

TEST_F(CApi, ErrorsBelongToTheThread) {
  EXPECT_NE(superstep_model_open("bragnn", nullptr, &handles_.model), SUPERSTEP_OK);
  std::thread([] { EXPECT_EQ(superstep_last_error().status, SUPERSTEP_OK); }).join();
  EXPECT_EQ(superstep_last_error().status, SUPERSTEP_INVALID_ARGUMENT);
  EXPECT_STREQ(superstep_status_name(SUPERSTEP_OK), "ok");
  EXPECT_STRNE(superstep_status_name(SUPERSTEP_BAD_FILE), superstep_status_name(SUPERSTEP_IO));
}

TEST_F(CApi, TrainsTakesParametersAndExports) {
  ASSERT_EQ(superstep_model_open("mlp", nullptr, &handles_.model), SUPERSTEP_OK);
  settings_.batch = 32;
  settings_.threads = 1;
  superstep_trainer_settings training = SUPERSTEP_TRAINER_SETTINGS_INIT;
  training.optimizer = "adam";
  training.learning_rate = 1e-3;
  ASSERT_EQ(superstep_trainer_create(handles_.model, &settings_, &training, &handles_.trainer), SUPERSTEP_OK)
      << last_words();
  const superstep_port* ports = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(superstep_trainer_inputs(handles_.trainer, &ports, &count), SUPERSTEP_OK);
  ASSERT_EQ(count, 2u);
  std::vector<float> x(32 * 16), y(32);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.1f * static_cast<float>(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(0.1f * static_cast<float>(i));
  const superstep_tensor values[] = {
      {ports[1].name, ports[1].element, ports[1].rank, ports[1].shape, nullptr, y.data()},
      {ports[0].name, ports[0].element, ports[0].rank, ports[0].shape, nullptr, x.data()}};
  double first = 0, last = 0;
  ASSERT_EQ(superstep_trainer_step(handles_.trainer, values, 2, 0, &first), SUPERSTEP_OK) << last_words();
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(superstep_trainer_step(handles_.trainer, values, 2, 0, &last), SUPERSTEP_OK);
  EXPECT_LT(last, 0.5 * first);

  ASSERT_EQ(superstep_model_parameters(handles_.model, &ports, &count), SUPERSTEP_OK);
  const superstep_port parameter = ports[0];
  std::int64_t elements = 1;
  for (int axis = 0; axis < parameter.rank; ++axis) elements *= parameter.shape[axis];
  std::vector<float> initial(static_cast<std::size_t>(elements)), trained = initial;
  superstep_tensor into{nullptr, parameter.element, parameter.rank, parameter.shape, nullptr, initial.data()};
  ASSERT_EQ(superstep_model_get_parameter(handles_.model, parameter.name, &into), SUPERSTEP_OK)
      << last_words();
  ASSERT_EQ(superstep_model_take_parameters(handles_.model, handles_.trainer), SUPERSTEP_OK) << last_words();
  into.data = trained.data();
  ASSERT_EQ(superstep_model_get_parameter(handles_.model, parameter.name, &into), SUPERSTEP_OK);
  EXPECT_NE(trained, initial);

  const auto file =
      std::filesystem::temp_directory_path() / ("superstep_c_" + std::to_string(getpid()) + ".onnx");
  EXPECT_EQ(superstep_model_write_onnx(handles_.model, file.c_str(), 0, 0), SUPERSTEP_OK) << last_words();
  EXPECT_GT(std::filesystem::file_size(file), 9473u * 4);
  superstep::keep_written(file, "CApi");
  std::filesystem::remove(file);
}

TEST_F(CApi, CallbacksAreAskedAndToldWithTheirContext) {
  int asked = 0;
  superstep_set_interrupt_check(
      [](void* context) {
        ++*static_cast<int*>(context);
        return 1;
      },
      &asked);
  ASSERT_EQ(superstep_model_open("mlp", nullptr, &handles_.model), SUPERSTEP_OK);
  settings_.target = "gc200";  // compiles vertex by vertex, and asks meanwhile
  expect_refused(superstep_session_create(handles_.model, &settings_, &handles_.session),
                 SUPERSTEP_INTERRUPTED, "");
  superstep_set_interrupt_check(nullptr, nullptr);
  EXPECT_GT(asked, 0);
  EXPECT_EQ(superstep_session_create(handles_.model, &settings_, &handles_.session), SUPERSTEP_OK)
      << last_words();
}

}  // namespace
