// Wrong and hostile surroundings: what the program says about files and folders that are missing, of another
// kind, full or not to be written, and what it leaves behind.
#include <gtest/gtest.h>

#include <fstream>

#include "superstep/base/file.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

namespace fs = std::filesystem;

void expect_refused(const fs::path& folder, const std::string& arguments, int code,
                    std::initializer_list<const char*> words) {
  const Outcome outcome = run_program(folder, arguments);
  EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output << outcome.errors;
  for (const char* word : words)
    EXPECT_TRUE(contains(outcome.errors, word)) << arguments << "\n" << outcome.errors;
}

class Robustness : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "folder.bin");
    fs::create_directories(folder_ / "folder.onnx");
    std::ofstream(folder_ / "empty").flush();
  }
  void refuses(const std::string& arguments, int code, std::initializer_list<const char*> words) {
    expect_refused(folder_ / "", arguments, code, words);
  }
  ScratchFolder folder_;
};

TEST_F(Robustness, AFolderIsNoFile) {
  refuses("train cifar10-cnn --data folder.bin", 1, {"folder.bin", "this is a folder"});
  refuses("train braggnn --data folder.bin", 1,
          {"this is a folder, and no file in it can be read as samples"});
  refuses("compare folder.bin folder.bin", 1, {"folder.bin", "Is a directory"});
  refuses("onnx check folder.onnx", 1, {"this is a folder, not a file"});
  refuses("predict mlp --json folder.bin", 1, {"folder.bin", "it is a folder"});
}

TEST_F(Robustness, PredictionsBeyondWhatWasMeasuredAreAskedFor) {
  refuses("predict mlp --on bow --replicas 5000", 1, {"5000 units are more than 64 times", "--extrapolate"});
  EXPECT_EQ(run_program(folder_ / "", "predict mlp --on bow --replicas 5000 --extrapolate").code, 0);
  const Outcome scaled = run_program(folder_ / "",
                                     "predict mlp --on bow --replicas 64 --scaling weak --provenance "
                                     "--stack poplar");
  EXPECT_EQ(scaled.code, 0) << scaled.errors;
  for (const char* words :
       {"weak scaling (predicted", "100.0 %", "link_latency", "poplar", "training_results_v1.0"})
    EXPECT_TRUE(contains(scaled.output, words)) << words << scaled.output;
}

TEST_F(Robustness, WhatIsMissingOrEmptyIsNamed) {
  refuses("train cifar10-cnn --data absent.bin", 1, {"absent.bin", "there is no such file"});
  refuses("train cifar10-cnn --data empty.bin", 1, {"empty.bin"});
  refuses("report --run empty", 1, {"empty", "not the folder of a training run"});
  refuses("validate empty", 1, {"has no header"});
  refuses("compare empty empty", 1, {"is not JSON"});
  refuses("graph model.onnx", 1, {"model.onnx"});
}

// Whatever a file calls its columns, holds in its cells, or a call names: a message steers no terminal.
TEST_F(Robustness, MessagesHoldNoControlCharacters) {
  write_file_atomically(folder_ / "columns.csv", std::string_view("a\x1b[2Jb,c\x07\n1,2\n"));
  write_file_atomically(folder_ / "cell.csv", std::string_view("smiles,Tg_K\n*CC*,\x1b[1m\n"));
  refuses("infer polymer-gcn --input columns.csv", 1, {"there is no column 'smiles'", "a?[2Jb, c?"});
  refuses("train polymer-gcn --data cell.csv", 1, {"column 'Tg_K' holds '?[1m'"});
  for (const char* call : {"infer polymer-gcn --input columns.csv", "train polymer-gcn --data cell.csv"})
    EXPECT_EQ(run_program(folder_ / "", call).errors.find('\x1b'), std::string::npos) << call;
}

// Kernels for a narrower processor are asked for by name; they train the same model, in another order of
// sums.
TEST_F(Robustness, InstructionSetsAreAskedForByName) {
  const std::string call = "train mlp --steps 2 --samples 400 --seed 1";
  setenv("SUPERSTEP_ISA", "sse\x1b[2J", 1);
  refuses(call, 2,
          {"SUPERSTEP_ISA: there is no instruction set sse?[2J", "scalar, avx2, avx512, avx512_bf16"});
  // Of every command, whether it computes anything or not.
  for (const char* other : {"list workloads", "complete llama --prompt a", "predict braggnn --on gc200"})
    refuses(other, 2, {"SUPERSTEP_ISA: there is no instruction set"});
  setenv("SUPERSTEP_ISA", "scalar", 1);
  EXPECT_EQ(run_program(folder_ / "", call).code, 0);
  unsetenv("SUPERSTEP_ISA");
}

// What cannot be written is told before the work is done.
TEST_F(Robustness, ResultsHaveAPlace) {
  refuses("bench gemm --seconds 100 --json absent/out.json", 1, {"absent/out.json", "make the folder first"});
  refuses("machine measure --out absent/here.toml", 1, {"absent/here.toml", "make the folder first"});
  EXPECT_FALSE(fs::exists(folder_ / "absent"));
  refuses("list --json out.json", 2, {"--json"});  // it has no result
}

TEST_F(Robustness, AResultIsShownThoughItsFileCannotBeWritten) {
  const Outcome outcome = run_program(
      folder_ / "", "bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --no-peak --json /dev/full");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.errors, "the disk is full")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.output, "mlp")) << "the table of results";
}

TEST_F(Robustness, ACacheThatCannotBeWrittenCostsNothing) {
  const Outcome outcome = run_program(folder_ / "", "train mlp --samples 600 --steps 2 --tune",
                                      "mkdir -p home/cache && ln -sf /dev/full home/cache/tuning.json &&");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "what was tuned is not remembered")) << outcome.errors;
}

// Every command that writes at its end says at its beginning that it cannot; a timeout stands for the work.
TEST_F(Robustness, OutputsAreTriedBeforeTheWork) {
  std::ofstream(folder_ / "file").flush();
  for (const char* call : {"train mlp --epochs 100000 --out file",
                           "train mlp --epochs 100000 --out /proc/self/run",
                           "train mlp --epochs 100000 --json missing/a.json",
                           "train mlp --epochs 100000 --mllog missing/log",
                           "train mlp --resume absent",
                           "infer resnet50 --samples 100000 --output missing/y.h5",
                           "infer resnet50 --samples 100000 --precision int8 --onnx missing/q.onnx",
                           "generate braggnn --samples 100000000 --out missing/a.h5",
                           "generate braggnn --samples 100000000 --out a.h5 --json missing/a.json",
                           "baseline braggnn --input empty --output missing/a.h5",
                           "baseline braggnn --input empty --picture missing/a.html",
                           "bench gemm --seconds 1000 --format csv --out missing/a.csv",
                           "bench gemm --seconds 1000 --json folder.bin",
                           "profile resnet50 --runs 100000 --out file",
                           "predict resnet50 --largest --json missing/a.json",
                           "report --run absent --out file",
                           "show absent.npy --out missing/page.html",
                           "onnx export resnet50 --out missing/a.onnx",
                           "machine measure --out missing/host.toml",
                           "machine system --out missing/system.json",
                           "graph mlp --out missing/g.txt",
                           "graph mlp --dump file",
                           "records export --out missing/r.json",
                           "scale mlp --steps 1000000 --format csv --out missing/a.csv",
                           "validate empty --json missing/a.json"}) {
    const Outcome outcome = run_program(folder_ / "", call, "timeout 20");
    EXPECT_EQ(outcome.code, 1) << call << "\n" << outcome.output << outcome.errors;
    EXPECT_TRUE(contains(outcome.errors, "superstep: error: ")) << call;
  }
  EXPECT_FALSE(fs::exists(folder_ / "a.h5"));
}

TEST_F(Robustness, ATrainingStepIsNotServed) {
  ASSERT_EQ(run_program(folder_ / "", "onnx export braggnn --with train-step --out s.onnx").code, 0);
  refuses("infer s.onnx", 1, {"output 'loss'", "has shape []", "without --with train-step"});
  refuses("train s.onnx", 1, {"output 'loss'", "is one number for a whole batch"});
}

TEST_F(Robustness, ATuningWithoutAPlaceForItGoesOn) {
  const Outcome closed = run_program(folder_ / "", "train mlp --samples 600 --steps 2 --tune --quiet",
                                     "SUPERSTEP_HOME=/proc/self/home");
  EXPECT_EQ(closed.code, 0) << closed.errors;
  EXPECT_TRUE(contains(closed.errors, "what was tuned is not remembered")) << closed.errors;
}

TEST_F(Robustness, TheMachineIsDescribed) {
  const Outcome outcome = run_program(folder_ / "", "machine system --out system.json");
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_TRUE(contains(content_of(folder_ / "system.json"), "system_name"));
}

TEST_F(Robustness, TheDoctorSaysWhatDoesNotWork) {
  const Outcome fine = run_program(folder_ / "", "doctor --json doctor.json");
  EXPECT_EQ(fine.code, 0) << fine.errors;
  EXPECT_TRUE(contains(fine.output, "instruction set")) << fine.output;
  EXPECT_TRUE(contains(content_of(folder_ / "doctor.json"), "\"findings\""));
  const Outcome ill = run_program(folder_ / "", "doctor", "env SUPERSTEP_HOME=/proc/none");
  EXPECT_EQ(ill.code, 1);
  EXPECT_TRUE(contains(ill.errors, "SUPERSTEP_HOME")) << ill.errors;
  EXPECT_TRUE(contains(ill.output, "cannot be written")) << ill.output;
}

// Damage in a run's folder is named, whichever file has it.
TEST_F(Robustness, ADamagedRunIsRefused) {
  ASSERT_EQ(run_program(folder_ / "", "train mlp --samples 600 --steps 4 --batch 64 --out run").code, 0);
  const fs::path config = folder_ / "run/config.json";
  const std::string whole = content_of(config);
  for (const auto& [from, to] : {std::pair{"\"batch\": 64", "\"batch\": -5"},
                                 {"\"batch\": 64", "\"batch\": \"many\""},
                                 {"\"precision\": \"f32\"", "\"precision\": \"f31\""}}) {
    std::string changed = whole;
    const std::size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file_atomically(config, changed.replace(at, std::string(from).size(), to));
    const Outcome outcome = run_program(folder_ / "", "train mlp --resume run");
    EXPECT_TRUE(outcome.code == 1 || outcome.code == 2) << to << outcome.code;
    EXPECT_FALSE(contains(outcome.errors, "internal error")) << outcome.errors;
  }
  write_file_atomically(config, whole.substr(0, whole.size() / 2));
  refuses("train mlp --resume run", 1, {"config.json", "is not JSON"});
  write_file_atomically(config, whole);
  EXPECT_EQ(run_program(folder_ / "", "train mlp --resume run").code, 0);
}

}  // namespace
}  // namespace superstep
