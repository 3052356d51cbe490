// Tables of measurements: laws of few constants, rows as calls, folds that leave out, and the vocabulary.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "superstep/lab/validate/tables/question.h"
#include "superstep/lab/validate/tables/report.h"
#include "superstep/lab/validate/tables/zoo_facts.h"
#include "superstep/machine/rates/choices.h"
#include "superstep/machine/rates/kept.h"
#include "superstep/machine/rates/law.h"
#include "superstep/machine/rates/machines.h"
#include "tests/contains.h"

namespace superstep::lab {
namespace {

namespace fs = std::filesystem;
using machine::FittedLaws;
using machine::MeasuredCall;

MeasuredCall call_on(const std::string& machine, double compute, double memory, double seconds) {
  return {.kinds = {"law"},
          .factors = {"law | " + machine},
          .own = "own | " + machine,
          .relatives = {"own | maker"},
          .terms = {.launches = 1, .compute = compute, .memory = memory},
          .place = {},
          .seconds = seconds,
          .group = "model"};
}

std::vector<const MeasuredCall*> all_of(const std::vector<MeasuredCall>& calls) {
  std::vector<const MeasuredCall*> pointers;
  for (const MeasuredCall& call : calls) pointers.push_back(&call);
  return pointers;
}

// Calls that a launch of 5 us and shares of a half and three quarters explain.
std::vector<MeasuredCall> explained(const std::string& machine, double factor = 1) {
  std::vector<MeasuredCall> calls;
  for (int i = 0; i < 40; ++i) {
    const double compute = 1e-6 * std::pow(1.4, i % 20), memory = 1e-6 * std::pow(1.4, (7 * i) % 20);
    calls.push_back(
        call_on(machine, compute, memory, factor * (5e-6 + std::max(compute / 0.5, memory / 0.75))));
  }
  return calls;
}

TEST(Laws, FindTheConstantsThatExplainTheCalls) {
  const std::vector<MeasuredCall> calls = explained("a");
  const FittedLaws laws(all_of(calls));
  const machine::LawConstants& found = laws.constants().at("law");
  EXPECT_NEAR(found.launch, 5e-6, 0.5e-6);
  EXPECT_NEAR(found.compute_share, 0.5, 0.03);
  EXPECT_NEAR(found.memory_share, 0.75, 0.05);
  EXPECT_EQ(found.calls, calls.size());
  for (const MeasuredCall& call : calls) EXPECT_NEAR(laws.seconds(call) / call.seconds, 1, 0.05);
}

// A machine that was never measured takes its kind's constants, and no factor; a law of which nothing is
// known has no answer.
TEST(Laws, UnknownMachinesTakeTheirKinds) {
  const std::vector<MeasuredCall> calls = explained("a");
  const FittedLaws laws(all_of(calls));
  MeasuredCall other = call_on("b", 1e-3, 0, 0);
  EXPECT_NEAR(laws.seconds(other), 2e-3, 0.1e-3);
  EXPECT_FALSE(laws.measured(other));
  other.kinds = {"another law"};
  EXPECT_EQ(laws.seconds(other), 0);
}

// A kind has constants of its own where they pay, and its parent's where they do not.
TEST(Laws, KindsHaveConstantsWhereTheyPay) {
  std::vector<MeasuredCall> calls;
  for (const char* kind : {"as the law", "slow to launch"})
    for (int m = 0; m < 4; ++m)
      for (MeasuredCall call : explained(fmt::format("m{}", m))) {
        call.kinds = {kind, "law"};
        call.group = fmt::format("m{}", m);
        if (call.kinds.front() == "slow to launch") call.seconds += 200e-6;
        calls.push_back(call);
      }
  const FittedLaws laws(all_of(calls));
  ASSERT_TRUE(laws.knows("slow to launch"));
  EXPECT_NEAR(laws.constants().at("slow to launch").launch, 205e-6, 20e-6);
  for (const MeasuredCall& call : calls)
    EXPECT_NEAR(laws.seconds(call) / call.seconds, 1, 0.1) << call.kinds.front();
}

// What a machine takes over its kind is a factor; of one that is as its kind says there is none.
TEST(Laws, MachinesAreFactors) {
  std::vector<MeasuredCall> calls = explained("a");
  for (const char* name : {"b", "c", "d"})
    for (const MeasuredCall& call : explained(name)) calls.push_back(call);
  for (const MeasuredCall& call : explained("slow", 2)) calls.push_back(call);
  const FittedLaws laws(all_of(calls));
  ASSERT_TRUE(laws.factors().contains("law | slow"));
  EXPECT_NEAR(laws.factors().at("law | slow").log, std::log(2), 0.1);
  EXPECT_NEAR(laws.seconds(calls.back()) / calls.back().seconds, 1, 0.1);
  EXPECT_NEAR(laws.seconds(calls.front()) / calls.front().seconds, 1, 0.1);
}

// A machine without neighbours of its own takes those of its relatives, drawn towards the law.
TEST(Laws, RelativesSayWhatNobodyMeasuredHere) {
  std::vector<MeasuredCall> calls = explained("a");
  for (MeasuredCall& call : calls) call.place = {std::log(call.terms.compute), std::log(call.terms.memory)};
  MeasuredCall odd = call_on("a", 1e-3, 1e-3, 2 * (5e-6 + 2e-3));
  odd.place = {20, 20};
  calls.push_back(odd);
  const FittedLaws laws(all_of(calls));
  MeasuredCall same = call_on("b", 1e-3, 1e-3, 0);
  same.place = odd.place;
  const double taken = laws.seconds_by_neighbours(same) / laws.seconds(same);
  EXPECT_GT(taken, 1.3);
  EXPECT_LT(taken, 2);
  same.relatives = {"own | another maker"};
  EXPECT_NEAR(laws.seconds_by_neighbours(same) / laws.seconds(same), 1, 1e-9);
}

// What lies far from every neighbour is the law's alone; where one lies, what it took over the law.
TEST(Laws, NeighboursSayWhatTheLawDoesNot) {
  std::vector<MeasuredCall> calls = explained("a");
  for (MeasuredCall& call : calls) call.place = {std::log(call.terms.compute), std::log(call.terms.memory)};
  MeasuredCall odd = call_on("a", 1e-3, 1e-3, 3 * (5e-6 + 2e-3));
  odd.place = {std::log(1e-3) + 20, 0};
  calls.push_back(odd);
  const FittedLaws laws(all_of(calls));
  EXPECT_NEAR(laws.seconds_by_neighbours(odd) / odd.seconds, 1, 0.1);
  MeasuredCall far = odd;
  far.place = {500, 500};
  EXPECT_NEAR(laws.seconds_by_neighbours(far) / laws.seconds(far), 1, 1e-6);
}

// What the program keeps says the same as what was fitted, to the digits of the files (places of neighbours
// have four: equally near ones may change); kernels that may not be kept are not.
TEST(Laws, AreKeptAsTheyWereFitted) {
  std::vector<MeasuredCall> calls = explained("a");
  for (MeasuredCall& call : calls) call.place = {std::log(call.terms.compute), std::log(call.terms.memory)};
  calls.front().seconds *= 1.5;
  calls.back().may_be_kept = false;
  calls.back().place = {900, 900};  // no neighbour of the others
  const FittedLaws laws(all_of(calls));
  FittedLaws read;
  machine::read_laws(machine::laws_text({&laws}), "laws", read);
  machine::read_factors(machine::factors_text({&laws}), "factors", read);
  machine::read_kernels(machine::kernels_text({&laws}), "kernels", read);
  EXPECT_EQ(read.constants().size(), laws.constants().size());
  EXPECT_EQ(read.neighbours().at("own | a").all.size(), calls.size() - 1);
  for (const MeasuredCall& call : calls) {
    EXPECT_NEAR(read.seconds(call) / laws.seconds(call), 1, 1e-3);
    if (call.may_be_kept) {
      EXPECT_NEAR(read.seconds_by_neighbours(call) / laws.seconds_by_neighbours(call), 1, 0.05);
    }
  }
}

TEST(Laws, DamagedFilesOfConstantsAreRefused) {
  FittedLaws laws;
  for (const char* wrong :
       {"a,1,1,1\n", "a,x,1,1,1,1,1,0,1,1,1\n", "a,1,0,1,1,1,1,0,1,1,1\n", "a,-1,1,1,1,1,1,0,1,1,1\n"})
    EXPECT_THROW(machine::read_laws(wrong, "laws", laws), Error) << wrong;
  EXPECT_THROW(machine::read_factors("a,1\n", "factors", laws), Error);
  machine::Spreads spreads;
  for (const char* wrong : {"a,1\n", "a,0,1,1\n", "a,2,1,1\n", "measured a,1,1,0\n", "a,x,1,1\n"})
    EXPECT_THROW(machine::read_spreads(wrong, "intervals", spreads), Error) << wrong;
  EXPECT_THROW(machine::read_kernels("0.1 2 3\n", "kernels", laws), Error);
  EXPECT_THROW(machine::read_kernels("= a | b\n0.1 two\n", "kernels", laws), Error);
}

// No share above the bound of its calls: what a machine could not do is told by launches.
TEST(Laws, SharesKeepTheBoundOfTheirCalls) {
  std::vector<MeasuredCall> calls = explained("a", 0.4);
  for (MeasuredCall& call : calls) call.most_share = 1;
  const machine::LawConstants& found = FittedLaws(all_of(calls)).constants().at("law");
  EXPECT_LE(found.compute_share, 1.0001);
  EXPECT_LE(found.memory_share, 1.0001);
  for (MeasuredCall& call : calls) call.most_share = 3;
  EXPECT_GT(FittedLaws(all_of(calls)).constants().at("law").compute_share, 1.2);
}

TEST(Laws, ChoicesAreReadAsWritten) {
  const std::vector<machine::Choice> kept =
      machine::read_choices(machine::choices_text({{"kernel-by-kernel", true, 7, 0.2, 0.3}}), "choices");
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_TRUE(kept.front().law() && kept.front().training);
  EXPECT_EQ(kept.front().rows, 7U);
  for (const char* wrong : {"a,train,1,1\n", "a,b,1,1,1\n", "a,train,x,1,1\n", "a,train,1,-1,1\n"})
    EXPECT_THROW(machine::read_choices(wrong, "choices"), Error) << wrong;
  EXPECT_TRUE(machine::kept_choice("kernel-by-kernel", true)->law());
  EXPECT_FALSE(machine::kept_choice("bulk-synchronous", true)->law());
  EXPECT_EQ(machine::kept_choice("static-stream", false), nullptr);
}

TEST(Laws, TheProgramsOwnAreWhole) {
  const FittedLaws& kept = machine::kept_laws();
  EXPECT_TRUE(kept.knows("product"));
  EXPECT_GT(kept.constants().size(), 50U);
  // Fewer than one constant in 100 rows that they were fitted to.
  EXPECT_LT(kept.constant_count(), 23561U / 100);
  for (const auto& [key, neighbours] : kept.neighbours()) {
    ASSERT_FALSE(neighbours.all.empty()) << key;
    for (const auto& one : neighbours.all)
      EXPECT_EQ(one.place.size(), neighbours.all.front().place.size()) << key;
  }
}

// What nobody needs a truth for: of every machine with a sheet, requests take longer with a larger batch,
// longer prompts and longer answers, and twice the batch makes between once and twice the tokens per second.
TEST(Questions, RequestsGrowWithWhatTheyAsk) {
  const machine::ModelFacts& model = *machine::known_language_model("llama-3-8b");
  for (const auto& [id, sheet] : machine::sheets()) {
    const machine::MachineFacts& facts = sheet.facts;
    if (facts.peak("fp16") <= 0 || facts.memory_rate <= 0 || facts.memory < 40e9) continue;
    const auto seconds = [&](double batch, double in, double out) {
      return machine::answer_by_law(
                 machine::request_call(facts, model, {.batch = batch, .in = in, .out = out}), facts)
          .seconds;
    };
    double before = 0;
    for (double batch = 1; batch <= 1024; batch *= 2) {
      const double now = seconds(batch, 512, 128);
      EXPECT_GE(now, before) << id << " " << batch;
      EXPECT_LE(now, before > 0 ? 2.001 * before : now) << id << " " << batch;
      before = now;
    }
    EXPECT_GT(seconds(8, 1024, 128), seconds(8, 512, 128)) << id;
    EXPECT_GT(seconds(8, 512, 256), seconds(8, 512, 128)) << id;
  }
}

// Networks: a larger batch takes longer, and no more than in proportion.
TEST(Questions, NetworksGrowWithTheirBatch) {
  const auto sums = machine::known_network("torchvision/resnet50@224");
  ASSERT_TRUE(sums);
  EXPECT_NEAR(sums->macs, 4.09e9, 0.02e9);
  for (const char* id : {"a100-40gb", "h100", "rtx3090", "t4", "mi300x"})
    for (const bool training : {false, true}) {
      const machine::MachineFacts facts = machine::facts_named(id).facts;
      double before = 0;
      for (double batch = 1; batch <= 4096; batch *= 2) {
        const double now =
            machine::answer_by_law(
                machine::network_call(facts, *sums, {.batch = batch, .training = training, .type = "amp"}),
                facts)
                .seconds;
        EXPECT_GT(now, before) << id;
        EXPECT_LE(now, before > 0 ? 2.001 * before : now) << id;
        before = now;
      }
    }
}

TEST(Questions, NetworksScaleWithTheirPictures) {
  const auto small = machine::known_network("timm/resnet50d@112"),
             own = machine::known_network("timm/resnet50d");
  ASSERT_TRUE(small && own);
  EXPECT_LT(small->macs, own->macs);
  EXPECT_EQ(small->parameters, own->parameters);
  EXPECT_FALSE(machine::known_network("timm/nothing"));
}

// A workload of the zoo has the sums that the same network has by its published name.
TEST(Questions, TheZoosSumsAreThoseOfTheSameNetwork) {
  const auto ours = zoo_facts("resnet50", 0);
  const auto published = machine::known_network("torchvision/resnet50");
  ASSERT_TRUE(ours && published);
  EXPECT_NEAR(ours->sums.macs / published->macs, 1, 0.01);
  EXPECT_NEAR(ours->sums.padded / published->padded, 1, 0.02);
  EXPECT_NEAR(ours->sums.parameters / published->parameters, 1, 0.01);
  const auto small = zoo_facts("efficientnet-b0", 0);
  ASSERT_TRUE(small);
  EXPECT_GT(small->sums.grouped, 0);
  EXPECT_LT(small->sums.grouped, small->sums.macs);
}

TEST(Questions, MachinesAreFoundByTheirSheets) {
  EXPECT_NEAR(machine::facts_named("h200").facts.memory, 141e9, 1e9);
  EXPECT_GT(machine::sheets().size(), 100U);
  EXPECT_THROW(machine::facts_named("h20o"), Error);
}

// An interval is of the narrowest class with twenty cells: a stack's, a family's, all.
TEST(Spreads, AreOfTheNarrowestClassThatIsKnown) {
  machine::Spreads spreads;
  spreads.add(machine::spread_name("products", "cublas", true), {.low = 0.9, .high = 1.1, .cells = 25});
  spreads.add(machine::spread_name("products", {}, true), {.low = 0.8, .high = 1.3, .cells = 40});
  spreads.add(machine::spread_name("products", "few", true), {.low = 0.99, .high = 1.01, .cells = 5});
  spreads.add(machine::spread_name("all", {}, false), {.low = 0.5, .high = 2, .cells = 100});
  spreads.add_measured("products", "a100");
  std::string name;
  EXPECT_EQ(spreads.of("products", "cublas", true, name).high, 1.1);
  EXPECT_EQ(spreads.of("products", "few", true, name).high, 1.3);
  EXPECT_EQ(name, "products, unseen model");
  EXPECT_EQ(spreads.of("products", "cublas", false, name).high, 2);
  EXPECT_EQ(name, "all, unseen machine");
  machine::Spreads read;
  machine::read_spreads(machine::spreads_text(spreads), "spreads", read);
  EXPECT_EQ(read.all().size(), spreads.all().size());
  EXPECT_TRUE(read.measured("products", "a100"));
  EXPECT_FALSE(read.measured("products", "h100"));
}

class Tables : public ::testing::Test {
 protected:
  Tables() { fs::create_directories(folder_); }
  ~Tables() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  void write_facts() {
    write("machines-facts.csv",
          "id,name,style,processors,clock_GHz,peak_f32_TFLOPS,peak_tf32_TFLOPS,peak_bf16_TFLOPS,peak_f16_"
          "TFLOPS,"
          "peak_fp8_TFLOPS,peak_i8_TOPS,memory_GB,memory_GBps,cache_MB,link_GBps_one_way,units_joined,power_"
          "W,kind,"
          "source,note\n"
          "one,Maker One,kernel-by-kernel,100,1,10,,100,100,,,40,1000,20,100,8,,DS,s,\n"
          "two,Maker Two,kernel-by-kernel,50,1,5,,50,50,,,40,500,20,100,8,,DS,s,\n");
    write("models.csv",
          "id,kind,params_M,gmacs_forward,activations_M,input,layers,width,heads,kv_heads,ffn,vocab,sequence,"
          "experts,"
          "active_experts,gated_ffn,source,note\n"
          "onnx:net,model,10,2,8,,,,,,,,,,,,s,\n"
          "llm:small,decoder,,,,tokens,8,512,8,8,2048,1000,1024,,,0,s,\n");
  }
  fs::path folder_ = fs::temp_directory_path() / ("superstep-tables-" + std::to_string(::getpid()));
};

constexpr const char* header =
    "id,source,place,workload,mode,machine,units,framework,precision,micro_batch,global_batch,replicas,"
    "pipeline_stages,grad_accum,metric,value,unit,note\n";

std::string row(const std::string& workload, const std::string& mode, const std::string& machine,
                const std::string& units_to_batch, const std::string& value, const std::string& note = "") {
  return fmt::format("x,s,p,{},{},{},{},,,,,{},{}\n", workload, mode, machine, units_to_batch, value, note);
}

TEST_F(Tables, UnderstandTheirVocabulary) {
  write_facts();
  write("rows.csv",
        header + row("gemm_1024x512x256_nn", "infer", "one", "1,cublas,fp16,", "time,0.02,ms") +
            row("bgemm_8x64x64x128", "infer", "one", "1,cublas,bf16,", "compute_rate,3,TFLOPS") +
            row("conv_w28_h28_c64_n8_k128_fw3_fh3_p1x1_s1x1", "train", "one", "1,cudnn,fp32,",
                "time_backward_weights,0.5,ms") +
            row("lstm_h512_n32_t25", "train", "one", "1,cudnn,fp32,32", "time_forward,2,ms") +
            row("softmax_4096x1024", "infer", "one", "1,pytorch,fp32,", "time,0.05,ms") +
            row("allreduce-1000000", "collective", "one", "8,nccl,fp32,", "network_throughput,50,GB/s") +
            row("onnx:net", "infer", "two", "1,pytorch,fp16,32", "throughput,4000,images/s") +
            row("llm:small", "infer", "one", "1,vllm,fp16,4", "generation_latency,2,s",
                "in 128 out 64 tokens") +
            row("llm:small", "train", "two", "8,fsdp,bf16,4", "throughput,100000,tokens/s",
                "sequence length 1024") +
            row("resnet50", "infer", "two", "1,pytorch,fp16,32", "throughput,900,images/s"));
  for (const TableCall& call : read_calls(folder_)) {
    EXPECT_TRUE(call.understood()) << call.model << ": " << call.reason;
    EXPECT_GT(call.peak_seconds, 0) << call.model;
    EXPECT_LT(call.peak_seconds, call.call.seconds) << call.model;
    EXPECT_NEAR(call.value_of(call.call.seconds), call.published, 1e-9 * call.published) << call.model;
  }
}

TEST_F(Tables, CountWhatIsNotUnderstoodByReason) {
  write_facts();
  write("rows.csv", header +
                        row("onnx:unknown", "infer", "one", "1,pytorch,fp16,32", "throughput,1,images/s") +
                        row("gemm_0x1x1", "infer", "one", "1,cublas,fp16,", "time,1,ms") +
                        row("gemm_8x8x8", "infer", "nowhere", "1,cublas,fp16,", "time,1,ms") +
                        row("llm:small", "infer", "one", "1,vllm,fp16,4", "power,200,W") +
                        row("gemm_8x8x8", "infer", "one", "1,cublas,fp16,", "time,1,weeks"));
  const TablesReport report = report_tables({.folder = folder_, .folds = {}});
  EXPECT_EQ(report.rows, 5U);
  EXPECT_EQ(report.understood, 0U);
  const std::string text = text_of(report);
  for (const char* reason :
       {"no facts of the model onnx:unknown", "no shape of a product", "no facts of the machine nowhere",
        "power is not predicted", "metric time in weeks"})
    EXPECT_TRUE(contains(text, reason)) << text;
}

TEST_F(Tables, FoldersWithoutTablesAreRefused) {
  EXPECT_THROW(read_calls(folder_), Error);
  EXPECT_THROW(folds_from("modell"), Error);
  EXPECT_EQ(folds_from("model,machine,model").size(), 2U);
}

// What predict asks is what validate judges: the same call, to the last term.
TEST_F(Tables, AQuestionIsTheRowOfATable) {
  write("rows.csv",
        header + row("gemm_1024x512x256", "infer", "h100", "1,cublas,bf16,", "time,0.02,ms") +
            row("onnx:timm/resnet50d@224", "infer", "h100", "1,pytorch,amp,64", "throughput,4000,images/s") +
            row("llm:llama-3-8b", "infer", "h100", "2,vllm,fp16,4", "generation_latency,2,s",
                "in 128 out 64 tokens"));
  write("models.csv",
        "id,kind,params_M,gmacs_forward,activations_M,input,layers,width,heads,kv_heads,ffn,vocab,sequence,"
        "experts,"
        "active_experts,gated_ffn,source,note\n"
        "llm:llama-3-8b,decoder,,,,tokens,32,4096,32,8,14336,128256,8192,,,1,s,\n");
  const std::vector<TableCall> calls = read_calls(folder_);
  ASSERT_EQ(calls.size(), 3U);
  const machine::MachineFacts facts = read_table_facts(folder_).machines.at("h100");
  const machine::LawCall asked[] = {
      call_of({.workload = "gemm_1024x512x256", .precision = "bf16"}, facts).law,
      call_of(
          {.workload = "timm/resnet50d@224", .software = "pytorch", .precision = "amp", .micro_batch = 64},
          facts)
          .law,
      machine::request_call(facts, *machine::known_language_model("llama-3-8b"),
                            {.batch = 4, .in = 128, .out = 64, .units = 2})};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(asked[i].call.kinds, calls[i].call.kinds);
    EXPECT_EQ(machine::answer_by_law(asked[i], facts).seconds,
              machine::answer_by_law(calls[i].law, facts).seconds);
  }
}

// A machine that is left out is judged by what the others say: its own constants would have been right.
TEST_F(Tables, AMachineThatIsLeftOutIsNotSeen) {
  write_facts();
  std::string text = header;
  for (int i = 0; i < 40; ++i) {
    const int m = 256 << (i % 5), k = 512 + 64 * i;
    const double flops = 2.0 * m * 1024 * k;
    // Both reach half of their peaks, but machine two is three times slower than that.
    text += row(fmt::format("gemm_{}x1024x{}", m, k), "infer", "one", "1,cublas,fp16,",
                fmt::format("time,{:.6g},ms", 1e3 * flops / 50e12));
    text += row(fmt::format("gemm_{}x1024x{}", m, k), "infer", "two", "1,cublas,fp16,",
                fmt::format("time,{:.6g},ms", 3e3 * flops / 25e12));
  }
  write("rows.csv", text);
  const std::vector<TableCall> calls = read_calls(folder_);
  const Folded folded = fold_calls(calls, {Fold::machine, Fold::model}, 2);
  const Folded alone = fold_calls(calls, {Fold::machine, Fold::model}, 1);
  double seen = 0, unseen = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    seen = std::max(seen, std::abs(folded.calls[i].error(Fold::none)));
    unseen += std::abs(folded.calls[i].error(Fold::machine)) / static_cast<double>(calls.size());
    EXPECT_EQ(folded.calls[i].seconds[2], alone.calls[i].seconds[2]);
  }
  EXPECT_LT(seen, 0.4);
  EXPECT_GT(unseen, 0.8);
}

TEST_F(Tables, APageHasWhatTheTerminalHas) {
  write_facts();
  write("rows.csv", header + row("gemm_1024x512x256_nn", "infer", "one", "1,cublas,fp16,", "time,0.02,ms"));
  const TablesReport report = report_tables({.folder = folder_, .folds = {Fold::model}});
  const std::string page = page_of(report);
  EXPECT_TRUE(contains(page, "| products | 1 | 1 |")) << page;
  EXPECT_TRUE(contains(page, "model left out"));
  EXPECT_TRUE(contains(text_of(report), "1 of 1 rows are understood"));
  EXPECT_FALSE(metrics_of(report).empty());
}

TEST(ZooFacts, AreThoseOfTheGraph) {
  const auto facts = zoo_facts("resnet50", 0);
  ASSERT_TRUE(facts);
  EXPECT_NEAR(facts->sums.macs, 4.1e9,
              0.1e9);  // K. He et al., arXiv 1512.03385: 3.8e9 with the stride elsewhere
  EXPECT_NEAR(facts->sums.parameters, 25.5e6, 0.5e6);
  const auto shorter = zoo_facts("bert-large-squad", 128), longer = zoo_facts("bert-large-squad", 384);
  ASSERT_TRUE(shorter && longer);
  EXPECT_GT(longer->sums.macs, 2.9 * shorter->sums.macs);
  EXPECT_FALSE(zoo_facts("resnet50", 384));
  EXPECT_FALSE(zoo_facts("nothing", 0));
}

}  // namespace
}  // namespace superstep::lab
