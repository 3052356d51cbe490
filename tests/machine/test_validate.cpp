// Published rows: reading them, the error table, and, where the rows are at hand, the errors themselves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "superstep/lab/validate/primitive_graph.h"
#include "superstep/lab/validate/stack_fit.h"
#include "superstep/lab/validate/validate.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;

class Validate : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_.string();
  }
  ~Validate() override { fs::remove(path_); }
  fs::path path_ = fs::temp_directory_path() / ("superstep-validate-" + std::to_string(::getpid()) + ".csv");
};

constexpr const char* operators =
    "# comment, with "
    "commas\nname,kind,passes,dtype,partials,accumulate,tiles,groups,m,k,n,cycles,total_bytes,max_tile_"
    "bytes\n"
    "a,gemm,fwd,half,float,yes,1472,1,200,64,10000,CYCLES,37024768,218712\n"
    "b,sorting,fwd,half,,,1472,1,1,1,1,100,1,1\n";

std::string with_cycles(const std::string& cycles) {
  std::string text = operators;
  return text.replace(text.find("CYCLES"), 6, cycles);
}

TEST_F(Validate, CountsWhatItDoesNotCover) {
  const Validation validation = validate(write(with_cycles("10128")), {});
  EXPECT_EQ(validation.machine, "gc200");
  ASSERT_EQ(validation.rows.size(), 2U);
  EXPECT_TRUE(validation.rows[0].predicted.has_value());
  EXPECT_FALSE(validation.rows[1].predicted.has_value());
  for (const Metric& metric : validation.metrics())
    EXPECT_TRUE(metric.name != "skipped" || metric.value == 1);
}

TEST_F(Validate, AWrongNumberIsAnError) {
  const double right = validate(write(with_cycles("10128")), {}).families.back().median;
  const double wrong = validate(write(with_cycles("1012800")), {}).families.back().median;
  EXPECT_LT(right, 0.3);
  EXPECT_GT(wrong, 0.9);
}

TEST_F(Validate, RefusesDamagedTables) {
  const auto refusal = [&](const std::string& text) -> std::string {
    try {
      validate(write(text), {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_TRUE(contains(refusal(""), "has no header"));
  EXPECT_TRUE(contains(refusal("a,b\n1,2\n"), "of no known kind"));
  EXPECT_TRUE(contains(refusal("kind,tiles,cycles\ngemm,1472\n"), "the row has 2 cells, the header 3"));
  EXPECT_TRUE(contains(refusal(with_cycles("many")), "'many' is not a number"));
  EXPECT_TRUE(contains(refusal("kind,tiles,cycles,m,k,n\ngemm,1472,5,-3,1,1\n"), "is not a count"));
  EXPECT_TRUE(contains(refusal("kind,tiles,cycles\ngemm,7,5\n"), "no machine has 7 tiles"));
  EXPECT_TRUE(contains(refusal("kind,tiles,cycles,stride_h\nconv,1472,5,0\n"),
                       "column stride_h: 0 is not a count above 0"));
  for (const char* shape : {"4xy", "1e400", "0x4", ""})
    EXPECT_TRUE(
        contains(refusal(std::string("kind,tiles,cycles,shape,dims\nreduce,1472,5,") + shape + ",0\n"),
                 "is no extent"))
        << shape;
}

constexpr const char* application_header =
    "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,replicas,"
    "pipeline_stages,"
    "grad_accum,metric,value,unit,note\n";

TEST_F(Validate, PredictsApplicationsAndPrimitives) {
  const Validation validation = validate(
      write(std::string(application_header) +
            "a,s,p,braggnn,train,gc200,1,pytorch,fp16,512,512,1,,,throughput,478000,samples/s,\"a, b\"\n"
            "b,s,p,gemm_1760x128x1760_nn,train,v100,1,cublas,fp32,,,,,,time,0.08,ms,\n"
            "c,s,p,nothing,train,v100,1,cublas,fp32,,,,,,time,0.08,ms,\n"
            "d,s,p,braggnn,train,tpu,1,jax,fp32,,,,,,throughput,1,samples/s,\n"),
      {});
  ASSERT_EQ(validation.rows.size(), 4U);
  EXPECT_TRUE(validation.rows[0].predicted && validation.rows[1].predicted);
  EXPECT_LT(validation.rows[0].low, *validation.rows[0].predicted);
  EXPECT_NEAR(*validation.rows[1].predicted, 0.07, 0.05);
  EXPECT_TRUE(contains(validation.rows[2].reason, "no workload nothing"));
  EXPECT_TRUE(contains(validation.rows[3].reason, "no machine file for tpu"));
}

// An epoch that begins with the compiler is slower than one that does not; a table's set of convolutions is
// their mean, and f16 is faster than f32 in each.
TEST_F(Validate, PredictsFirstEpochsAndSetsOfKernels) {
  const std::string resnet = ",s,p,resnet50,train,gc200,1,pytorch,mixed,,,1,,,throughput";
  const Validation validation = validate(
      write(application_header + ("a" + resnet + ",1862.9,images/s,\n") +
            ("b" + resnet + "_first_epoch,1113,images/s,\n") +
            "c,s,p,conv2d,train,gc200,1,tensorflow,fp16,,,,,,speedup_half_over_single,3.88,x,\n"
            "d,s,p,braggnn,train,gc200,1,pytorch,fp16,512,512,1,,,throughput_first_epoch,1,samples/s,\n"),
      {});
  ASSERT_EQ(validation.rows.size(), 4U);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(validation.rows[i].predicted) << validation.rows[i].reason;
  EXPECT_LT(*validation.rows[1].predicted, 0.95 * *validation.rows[0].predicted);
  EXPECT_LT(validation.rows[1].low, *validation.rows[1].predicted);
  EXPECT_GT(*validation.rows[2].predicted, 1.5);
  EXPECT_FALSE(validation.rows[3].predicted);
}

// What the vendor published of the form with groups (graphcore.ai, performance results, SDK before 2.5): the
// rows say neither micro-batch nor stages, which are the public set-up's, two chips a replica.
TEST_F(Validate, PredictsTheGroupedEfficientNetByItsPublicSetUp) {
  const std::string b4 = ",s,p,efficientnet-b4-g16,train,bow,",
                    tail = ",tensorflow,16.16,,6144,,,,throughput,";
  const Validation validation =
      validate(write(application_header + ("pod16" + b4 + "16" + tail) + "8936,images/s,\n" +
                     ("pod64" + b4 + "64" + tail) + "34943,images/s,\n"),
               {});
  ASSERT_EQ(validation.rows.size(), 2U);
  for (const RowResult& row : validation.rows) ASSERT_TRUE(row.predicted) << row.reason;
  EXPECT_TRUE(contains(validation.rows[0].reason,
                       "micro-batch 3: set-up tensorflow/efficientnet-b4-g16 (graphcore/examples"))
      << validation.rows[0].reason;
  const double more = *validation.rows[1].predicted / *validation.rows[0].predicted;
  EXPECT_GT(more, 3);  // four times the chips, a quarter of the micro-batches a step
  EXPECT_LE(more, 4.001);
}

// Rows of BERT are of the model with its heads: pre-training has hidden words alone, answers have two scores
// a word, so that a step of either costs less than scores of a vocabulary for all words.
TEST_F(Validate, PredictsBertWithItsHeads) {
  const auto rate = [&](const std::string& workload, const std::string& note) {
    const Validation validation =
        validate(write(application_header + ("a,s,p," + workload) +
                       ",train,a100-80gb,1,pytorch,tf32,16,16,1,,,throughput,100,sequences/s," + note + "\n"),
                 {});
    EXPECT_TRUE(validation.rows[0].predicted) << validation.rows[0].reason;
    return validation.rows[0].predicted.value_or(0);
  };
  const double pretrain = rate("bert-large-pretrain", "sequence length 384"),
               squad = rate("bert-large-squad", "sequence length 384");
  EXPECT_EQ(pretrain, rate("bert-large", "sequence length 384"));
  EXPECT_GT(squad, pretrain);
  EXPECT_LT(squad, 1.2 * pretrain);
  EXPECT_GT(rate("bert-base", "sequence length 384"), 2 * pretrain);
  EXPECT_GT(rate("bert-base-squad", "sequence length 384"), 2 * squad);
  EXPECT_GT(rate("bert-large-pretrain", "sequence length 128"), 1.5 * pretrain);
}

TEST_F(Validate, CountsWhatItsIntervalsHold) {
  const auto coverage = [&](const std::string& value, const std::string& note) {
    const Validation validation =
        validate(write(std::string(application_header) +
                       "a,s,p,mlp,train,gc200,1,pytorch,fp16,64,64,1,,,throughput," + value + ",samples/s," +
                       note + "\nb,s,p,mlp,train,gc200,1,pytorch,fp16,64,64,1,,,throughput,1,samples/s,\n"),
                 {});
    for (const Metric& metric : validation.metrics())
      if (metric.name == "interval_coverage") return std::pair(metric.value, *validation.rows[0].predicted);
    return std::pair(-1.0, 0.0);
  };
  const auto [none, fed] = coverage("2", "");
  EXPECT_EQ(none, 0);
  EXPECT_EQ(coverage(std::to_string(fed), "").first, 0.5);
  EXPECT_GE(coverage("2", "data pipeline not counted").second, fed);
}

TEST_F(Validate, RanksMachinesThatAreFarApart) {
  const auto rankings = [&](const char* gpu, const char* ipu) {
    return rankings_of(
        validate(write(std::string(application_header) +
                       "gpu,s,p,braggnn,train,a100-40gb,1,pytorch,fp16,64,64,1,,,throughput," + gpu +
                       ",samples/s,\nipu,s,p,braggnn,train,gc200,1,pytorch,fp16,64,64,1,,,"
                       "throughput," +
                       ipu + ",samples/s,\n"),
                 {})
            .rows);
  };
  EXPECT_EQ(rankings("100", "120").pairs, 0U);  // too close to be ranked
  EXPECT_EQ(rankings("100", "140").pairs, 1U);
  EXPECT_EQ(rankings("100", "140").right, 1U);
  EXPECT_EQ(rankings("140", "100").right, 0U);
  EXPECT_EQ(rankings("140", "100").wrong, std::vector<std::string>{"gpu above ipu"});
}

// Rows that a launch of 45 us explains: the fit finds it, whatever the file says.
TEST_F(Validate, FitsWhatTheRowsSay) {
  const auto rows = [&](double factor) {
    std::string text = application_header;
    for (const char* batch : {"1", "2"})
      text += fmt::format(
          "b{0},s,p,braggnn,infer,a100-40gb,1,pytorch,fp32,{0},{0},1,,,throughput,{1},samples/s,\n", batch,
          factor * std::atoi(batch));
    return write(text);
  };
  const double rate = *validate(rows(1), {}).rows[0].predicted;
  const double launch =
      machine::find_machine("a100-40gb").driven_by("pytorch-eager").stack()->value("launch");
  const StackFit fit = fit_stacks(PublishedTable(rows(rate * launch / 45e-6)), 12);
  EXPECT_EQ(fit.rows, 2U);
  EXPECT_GT(fit.before.median, 0.2);
  EXPECT_LT(fit.fitted.median, 0.03);
  const auto found = std::ranges::find(fit.constants, "launch", &StackFit::Value::name);
  ASSERT_NE(found, fit.constants.end());
  EXPECT_NEAR(found->after, 45e-6, 2e-6);
}

TEST(PrimitiveNames, AreReadOrRefused) {
  EXPECT_TRUE(primitive_graph("gemm_k4", "time"));
  EXPECT_TRUE(primitive_graph("conv_w7_h7_c32_n16_k32_fw3_fh3_p0x0_s1x1", "time_backward_weights"));
  for (const char* wrong : {"gemm_", "gemm_1x2", "gemm_0x1x1", "gemm_99999999999x1x1", "conv_w7", "lstm",
                            "conv_w1_h1_c1_n1_k1_fw9_fh9_p0x0_s1x1"})
    EXPECT_FALSE(primitive_graph(wrong, "time")) << wrong;
}

// The rows are not part of the repository: SUPERSTEP_PUBLISHED_OPERATORS names the file.
TEST(PublishedOperators, ErrorsAreWithinTheTarget) {
  const char* file = std::getenv("SUPERSTEP_PUBLISHED_OPERATORS");
  if (!file) GTEST_SKIP() << "SUPERSTEP_PUBLISHED_OPERATORS does not name a file of operator rows";
  const Validation validation = validate(file, {});
  const ErrorSummary& all = validation.families.back();
  EXPECT_LE(all.median, 0.12);
  EXPECT_GE(static_cast<double>(all.within), 0.9 * static_cast<double>(all.rows));
  EXPECT_LE(validation.memory.back().median, 0.25);
}

}  // namespace
}  // namespace superstep::lab
