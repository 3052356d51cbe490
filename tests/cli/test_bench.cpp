// superstep bench, compare, report, records: as a user runs them, stops them and gets them wrong.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using nlohmann::json;

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

void expect_refused(const std::string& arguments, int code, std::initializer_list<std::string> parts) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  for (const std::string& part : parts) expect_says(outcome.errors, part);
}

TEST(Bench, WrongCallsSayWhatToDo) {
  expect_refused("bench gemm --config gemm_k9", 2, {"gemm_k9", "did you mean"});
  expect_refused("bench braggn", 2, {"braggn", "did you mean 'braggnn'"});
  expect_refused("bench gemm --mode finetune", 2, {"there is no such mode", "train, infer, backward"});
  expect_refused("bench gemm --precision f33", 2, {"f33"});
  expect_refused("bench mlp --load bursty", 2, {"bursty", "single"});
  expect_refused("bench gemm --format xml", 2, {"xml"});
  expect_refused("bench gemm --on gpu", 2, {"gpu"});
  expect_refused("bench gemm --gradient forward:1", 2, {"--gradient", "gemm is a primitive"});
  expect_refused("bench mlp,relu --gradient forward:1", 2, {"relu is a primitive"});
  // What is of another kind of measurement would be ignored.
  expect_refused("bench gemm --order foo", 2,
                 {"--order", "is an option of all-reduce", "leave --order away"});
  expect_refused("bench gemm --ranks 2", 2, {"--ranks", "all-reduce, gradients"});
  expect_refused("bench mlp --rows 4", 2, {"--rows", "is an option of serve"});
  expect_refused("bench mlp --config gemm_k4", 2, {"--config", "is an option of primitives"});
  expect_refused("bench all-reduce --batch 4", 2, {"--batch", "primitives, workloads, model files"});
  expect_refused("bench gradients --order ranks", 2, {"--order", "is an option of all-reduce"});
  expect_refused("bench serve http://127.0.0.1:1 --precision bf16", 2,
                 {"--precision", "means nothing for serve"});
  expect_refused("bench serve http://127.0.0.1:1 --connections 4", 2, {"--connections", "--request-rate"});
  expect_refused("bench data", 2, {"data", "takes what --data takes"});
  expect_refused("bench data a.npz --precision bf16", 2, {"--precision", "means nothing for data"});
  expect_refused("bench data a.npz --against tf.data", 2, {"tf.data", "dataloader"});
  expect_refused("bench data a.npz --batch 4,8", 2, {"--batch", "one number of samples"});
  expect_refused("bench data a.npz --python python3", 2, {"--python", "--against"});
  expect_refused("bench data none.npz", 1, {"none.npz", "there is no such file"});
  expect_refused("bench gemm --pause 4", 2, {"--pause", "means nothing without --self-check"});
  expect_refused("bench mlp --rate 4", 2, {"--rate", "means nothing without --load"});
  expect_refused("bench gemm --sweep --config gemm_k4", 2, {"--config", "--sweep takes its own"});
  expect_refused("report --results none.json", 1, {"none.json"});
  expect_refused("compare none.json other.json", 1, {".json", "there is no such file"});
}

// Every rate is there, and a peer that is not installed says so and is no failure.
TEST(Bench, SamplesOutOfFilesBesideTheirFloors) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program(folder / "", "generate braggnn --samples 300 --out peaks.npz").code, 0);
  const Outcome outcome =
      run_program(folder / "",
                  "bench data peaks.npz --against dataloader --python /bin/false --seconds 0.05 "
                  "--threads 2 --batch 16 --no-record --json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "peaks.npz: 300 samples");
  expect_says(outcome.output, "dataloader: absent");
  const json result = json::parse(content_of(folder / "out.json"));
  for (const char* name : {"rate_in_order", "bytes_in_order", "rate_shuffled", "bytes_shuffled",
                           "bytes_pread", "bytes_memcpy", "share_of_pread", "share_of_memcpy"})
    EXPECT_GT(result["metrics"].value(name, json{{"value", 0}})["value"].get<double>(), 0) << name;
}

// A primitive and a workload have this name: what only workloads take means the workload.
TEST(Bench, LstmWithAGradientIsTheWorkload) {
  const ScratchFolder folder;
  const std::string rest = " --mode train --batch 2 --seconds 0.02 --threads 1 --no-peak --json out.json";
  const auto measured = [&](const std::string& words) {
    const Outcome outcome = run_program(folder / "", "bench lstm" + words + rest);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return json::parse(content_of(folder / "out.json"));
  };
  const json forward = measured(" --gradient reverse --gradient forward:1");
  ASSERT_GE(forward.size(), 2U);
  EXPECT_EQ(forward[0]["workload"]["name"], "lstm") << forward[0];
  EXPECT_EQ(forward[1]["config"]["gradient"], "forward:1") << forward[1];
  EXPECT_TRUE(measured(" --config rnn_k3")["id"].get<std::string>().starts_with("rnn_k3"));
}

TEST(Bench, TimesTheBackwardPassAloneWhereThereIsOne) {
  const ScratchFolder folder;
  const std::string rest = " --mode backward --seconds 0.02 --threads 1 --no-peak --json out.json";
  const Outcome outcome = run_program(folder / "", "bench gemm --config gemm_64x32x48" + rest);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json result = json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(result["id"], "gemm_64x32x48-backward-f32") << result;
  for (const char* const what : {"relu", "lstm", "gru", "rnn", "mlp"}) {
    const Outcome refused = run_program(folder / "", "bench " + std::string(what) + rest);
    EXPECT_EQ(refused.code, 2) << what;
    expect_says(refused.errors, "--mode backward: is of gemm and conv");
  }
  const Outcome model = run_program(folder / "", "predict mlp --on gc200 --mode backward");
  EXPECT_EQ(model.code, 2);
  expect_says(model.errors, "--mode backward: is of gemm and conv");
}

TEST(Bench, MeasuresTheFirstAgainAndSaysHowItChanged) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "",
                  "bench mlp --mode infer --batch 1,64 --seconds 0.02 --threads 1 --no-peak --json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json results = json::parse(content_of(folder / "out.json"));
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[2]["id"], "mlp-infer-f32-b1-again");
  EXPECT_EQ(results[2]["config"]["repeats"], "mlp-infer-f32-b1");
  expect_says(results[2]["metrics"]["step_time"]["flags"].dump(), "since its first measurement");
  expect_says(outcome.errors, "[3/3, ");
}

std::string model_file(const char* name) {
  return fmt::format("{}/tests/onnx/models/{}/model.onnx", SUPERSTEP_SOURCE, name);
}

constexpr const char* briefly = " --seconds 0.02 --threads 1 --no-peak --json out.json";

TEST(BenchOfFiles, MeasuresServingInTheBatchOfTheFile) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "", "bench " + model_file("mobilenet_v3") + briefly);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json result = json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(result["workload"]["mode"], "infer");
  EXPECT_EQ(result["config"]["batch"], 2);
  EXPECT_GT(result["metrics"]["step_time"]["value"].get<double>(), 0);
  expect_says(result["config"]["checked"], "of the reference evaluation");
}

TEST(BenchOfFiles, TakesOpenBatchesSeveralInputsAndExtents) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "bench " + model_file("bert") + " --batch 3,8 --shape time=7" + briefly);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json results = json::parse(content_of(folder / "out.json"));
  ASSERT_EQ(results.size(), 3U);  // the first once more
  EXPECT_EQ(results[1]["config"]["batch"], 8);
  EXPECT_GT(results[1]["workload"]["flop_per_sample"].get<double>(), 1000);
}

TEST(BenchOfFiles, TrainsWhereItIsAsked) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "bench " + model_file("braggnn") + " --mode train --batch 4" + briefly);
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json result = json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(result["workload"]["mode"], "train");
  expect_says(result["config"]["checked"], "finite");
}

TEST(BenchOfFiles, RefusesWhatItCannotMeasure) {
  const ScratchFolder folder;
  std::ofstream(folder / "broken.onnx") << "no model";
  const std::string broken = (folder / "broken.onnx").string();
  expect_refused("bench " + broken, 1, {"broken.onnx"});
  expect_refused("bench none.onnx", 1, {"none.onnx"});
  expect_refused("bench " + model_file("mobilenet_v3") + " --batch 3", 2, {"fixes the batch at 2"});
  expect_refused("bench " + model_file("bert") + " --shape length=3,4", 2, {"length"});
  expect_refused("bench mlp --mode infer --peers", 2, {"--peers", "model files"});
  expect_refused("bench mlp --loss mse", 2, {"--loss", "model files"});
}

// A program in the place of Python that speaks the protocol of bench/peers, or does not.
std::string interpreter(const ScratchFolder& folder, const std::string& body) {
  const std::filesystem::path path = folder / "interpreter";
  std::ofstream(path) << "#!/bin/sh\n" << body;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

json with_peers(const ScratchFolder& folder, const std::string& python) {
  const Outcome outcome = run_program(
      folder / "", "bench " + model_file("mobilenet_v3") + " --peers --python " + python + briefly);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  return json::parse(content_of(folder / "out.json"));
}

TEST(BenchOfFiles, TimesPeersThatAreThere) {
  const ScratchFolder folder;
  const json result = with_peers(folder, interpreter(folder,
                                                     "test -f \"$1\" && test -f \"$2\" || exit 1\n"
                                                     "echo 'ready {\"contender\": \"Peer 7\"}'\n"
                                                     "while read line; do echo times 0.25; done\n"));
  EXPECT_EQ(result["config"]["peers"]["onnxruntime"], "Peer 7");
  EXPECT_EQ(result["metrics"]["time_openvino"]["value"], 0.25);
  const double ours = result["metrics"]["step_time"]["value"].get<double>();
  EXPECT_DOUBLE_EQ(result["metrics"]["ratio_openvino"]["value"].get<double>(), 0.25 / ours);
}

TEST(BenchOfFiles, NamesPeersThatAreNot) {
  const ScratchFolder folder;
  expect_says(
      with_peers(folder,
                 interpreter(folder, "echo absent no such module\nexit 3\n"))["config"]["peers"]["openvino"],
      "absent: no such module");
  expect_says(with_peers(folder, interpreter(folder, "exit 1\n"))["config"]["peers"]["openvino"],
              "ended without a word");
  const json none = with_peers(folder, (folder / "no-python").string());
  expect_says(none["config"]["peers"]["onnxruntime"], "cannot be started");
  EXPECT_FALSE(none["metrics"].contains("time_onnxruntime"));
}

// The peer itself asks to stop while it is waited for.
TEST(BenchOfFiles, CtrlCLeavesNothingOfAPeer) {
  const ScratchFolder folder;
  const std::string python = interpreter(folder, "kill -INT $PPID\nsleep 30\n");
  const Outcome outcome = run_program(
      folder / "", "bench " + model_file("mobilenet_v3") + " --peers --python " + python + briefly,
      "TMPDIR='" + (folder / "").string() + "'");
  EXPECT_EQ(outcome.code, 130) << outcome.errors;
  for (const auto& entry : std::filesystem::directory_iterator(folder / ""))
    EXPECT_EQ(entry.path().string().find("superstep-peer-"), std::string::npos) << entry.path();
}

TEST(Bench, RepeatsInFreshProcesses) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "",
      "bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --no-peak --processes=2 --json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json result = json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(result["config"]["processes"], 2);
  EXPECT_EQ(result["metrics"]["step_time"]["process_values"].size(), 2U);
  expect_says(outcome.output, "2 processes, ");
  // The record is that of the whole, not of each process.
  const Outcome records = run_program(folder / "", "records list");
  expect_says(records.output, "     1  20");
  EXPECT_EQ(records.output.find("     2  20"), std::string::npos) << records.output;
}

TEST(Bench, ASweepEndsWithARowWhereMemoryDoes) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_program(folder / "", "bench relu --sweep --mode infer --seconds 0.01 --threads 1 --json out.json",
                  "ulimit -v 400000;");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json results = json::parse(content_of(folder / "out.json"));
  ASSERT_GE(results.size(), 4U);
  expect_says(results[results.size() - 2]["config"].dump(), "memory ends: its tensors take");
  expect_says(outcome.output, "not run: memory ends");
}

TEST(Bench, CtrlCKeepsWhatWasMeasured) {
  const ScratchFolder folder;
  // A call of the second row takes longer than the program waits for one that does not listen.
  const std::string script =
      "cd '" + (folder / "").string() +
      "' && export SUPERSTEP_HOME=home; : >err.txt; " SUPERSTEP_PROGRAM
      " bench conv --config conv_k1,conv_k4 --batch 64 --mode infer --seconds 0.2 --threads 1 --no-record "
      "--json "
      "out.json "
      ">out.txt 2>err.txt & program=$!; "
      "until grep -q '\\[1/' '" +
      (folder / "err.txt").string() +
      "' || ! kill -0 $program; do sleep 0.02; done; kill -INT $program; wait $program";
  const int status = std::system(script.c_str());
  const std::string errors = content_of(folder / "err.txt");
  EXPECT_EQ(WEXITSTATUS(status), 130) << errors;
  expect_says(errors, "stopped");
  const json result = json::parse(content_of(folder / "out.json"));
  EXPECT_EQ(result["id"], "conv_k1-infer-f32");
  expect_says(content_of(folder / "out.txt"), "conv_k1");
}

TEST(Bench, SelfCheckRunsEverythingTwice) {
  const ScratchFolder folder;
  const Outcome outcome = run_program(
      folder / "",
      "bench mlp --mode infer --batch 1 --seconds 0.02 --threads 1 --no-peak --self-check --pause 0");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  expect_says(outcome.output, "self-check: ");
  expect_says(outcome.output, " of 1 rows agree within their intervals");
}

TEST(Bench, EnergyIsMeasuredOrSaidToBeAbsent) {
  if (std::filesystem::exists("/sys/class/powercap/intel-rapl:0/energy_uj"))
    GTEST_SKIP() << "this host counts energy: ten seconds per row";
  const ScratchFolder folder;
  const Outcome outcome = run_program(folder / "",
                                      "bench mlp,gemm --config gemm_k1 --mode infer --batch 1 --seconds 0.01 "
                                      "--threads 1 --no-peak --energy --json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const json results = json::parse(content_of(folder / "out.json"));
  for (std::size_t i = 0; i < 2; ++i) {
    expect_says(results[i]["config"]["energy"].dump(), "absent: ");
    EXPECT_FALSE(results[i]["metrics"].contains("energy_per_sample"));
  }
}

TEST(Report, AfterBenchmarksShowsTheNewestOfEach) {
  const ScratchFolder folder;
  const std::string quick = "bench mlp --mode infer --seconds 0.01 --threads 1 --no-peak --batch ";
  for (const char* batch : {"1", "64", "1"}) ASSERT_EQ(run_program(folder / "", quick + batch).code, 0);
  const Outcome outcome = run_program(folder / "", "report --out site");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  const std::string page = content_of(folder / "site/index.html");
  expect_says(page, "2 results of ");
  expect_says(page, "Batch sweeps");
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "the page's own alone";
}

// --- the records

TEST(RecordsCommand, RefusesAFileOfALaterVersion) {
  const ScratchFolder folder;
  ASSERT_EQ(
      run_program(folder / "", "bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --no-peak").code,
      0);
  // user_version is the big-endian number at byte 60 of an SQLite file.
  std::fstream file(folder / "home/records.sqlite", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(60);
  file.write("\0\0\0\x09", 4);
  file.close();
  const Outcome list = run_program(folder / "", "records list");
  EXPECT_EQ(list.code, 1);
  expect_says(list.errors, "are of version 9, this program knows up to 2");
  // A measurement is not lost for that.
  const Outcome bench = run_program(
      folder / "", "bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --no-peak --json out.json");
  EXPECT_EQ(bench.code, 0) << bench.errors;
  expect_says(bench.errors, "not in the records");
  EXPECT_TRUE(std::filesystem::exists(folder / "out.json"));
}

TEST(RecordsCommand, RefusesWhatIsNoResult) {
  const ScratchFolder folder;
  std::ofstream(folder / "later.json") << R"({"schema": "superstep-result/2", "metrics": {}})";
  std::ofstream(folder / "other.json") << "[1, 2";
  for (const char* command : {"records import ", "report --results ", "compare other.json "}) {
    const Outcome outcome = run_program(folder / "", std::string(command) + "later.json");
    EXPECT_EQ(outcome.code, 1) << command << outcome.output << outcome.errors;
    expect_says(outcome.errors, ".json");
  }
  expect_says(run_program(folder / "", "records import later.json").errors,
              "is of version superstep-result/2");
}

}  // namespace
}  // namespace superstep
