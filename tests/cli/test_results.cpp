// --json of every command: one schema, every member of it, and the same as what the records keep.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

using nlohmann::json;

json result_of(const ScratchFolder& folder, const std::string& arguments) {
  const Outcome outcome = run_program(folder / "", arguments + " --json result.json");
  EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.errors;
  const json result = json::parse(content_of(folder / "result.json"), nullptr, false);
  std::filesystem::remove(folder / "result.json");
  return result;
}

TEST(Results, OfEveryCommandHaveEveryMemberOfTheSchema) {
  const ScratchFolder folder;
  for (const char* command :
       {"generate mlp --samples 64 --out data.h5", "show data.h5", "baseline mlp --input data.h5",
        "train mlp --data data.h5 --batch 16 --steps 4 --out run", "infer mlp --weights run --input data.h5",
        "report --run run", "profile mlp --data data.h5 --batch 16", "predict mlp",
        "onnx export mlp --weights run --out mlp.onnx", "onnx check mlp.onnx",
        "bench relu --config relu_k1 --mode infer --seconds 0.05 --no-peak", "records show last"}) {
    const json result = result_of(folder, command);
    EXPECT_EQ(result["schema"], "superstep-result/1") << command;
    for (const char* member : {"/command", "/id", "/created", "/program/version", "/workload/name",
                               "/workload/mode", "/workload/parameters", "/workload/flop_per_sample",
                               "/machine/id", "/machine/units", "/config", "/metrics", "/environment/host"})
      EXPECT_TRUE(result.contains(json::json_pointer(member))) << command << ": " << member;
    for (const auto& [name, metric] : result["metrics"].items())
      for (const char* member : {"value", "unit", "how"})
        EXPECT_TRUE(metric.contains(member)) << command << ": " << name << ": " << member;
    for (const auto& [name, metric] : result["metrics"].items())
      EXPECT_EQ(metric.contains("samples"), metric.contains("stddev")) << command << ": " << name;
  }
}

// Also those that commands keep that this one starts: scale has others train.
TEST(Results, ForOthersHaveNoPlaces) {
  const ScratchFolder folder;
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  const std::string name = std::string("\"hostname\": \"") + host;
  const auto exported = [&] {
    const Outcome outcome = run_program(folder / "", "records export --out all.json");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return content_of(folder / "all.json");
  };
  const std::string scale = "scale mlp --ranks 1 --steps 2 --samples 600 --repeat 1 --quiet";
  EXPECT_EQ(run_program(folder / "", scale + " --private --out " + (folder / "scale.json").string()).code, 0);
  const std::string bench = "bench mlp --mode infer --batch 1 --seconds 0.01 --quiet";
  EXPECT_EQ(run_program(folder / "", bench, "SUPERSTEP_PRIVATE=1").code, 0);
  const std::string kept = exported();
  EXPECT_EQ(kept.find(name), std::string::npos) << kept;
  EXPECT_EQ(kept.find((folder / "").string()), std::string::npos) << kept;
  EXPECT_EQ(run_program(folder / "", bench, "SUPERSTEP_PRIVATE=0").code, 0);
  EXPECT_NE(exported().find(name), std::string::npos) << "otherwise they say where";
}

// What a command writes and what the records keep of it are one result: where it was done included.
TEST(Results, InFilesAreThoseOfTheRecords) {
  const ScratchFolder folder;
  for (const char* command : {"train mlp --batch 16 --steps 4 --samples 64",
                              "infer mlp --on reference --batch 4 --samples 8", "profile mlp --batch 16"}) {
    json written = result_of(folder, command), kept = result_of(folder, "records show last");
    EXPECT_EQ(kept["config"]["record"],
              std::stoi(kept["id"].get<std::string>().substr(written["id"].get<std::string>().size() + 1)));
    kept["config"].erase("record");
    kept["id"] = written["id"];
    EXPECT_EQ(kept, written) << command;
  }
}

}  // namespace
}  // namespace superstep
