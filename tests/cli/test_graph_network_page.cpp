// The script and the commands of docs/graph-networks.md, on a smaller graph: a Cluster-GCN that is made,
// trained and served on the whole graph.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "superstep/file/npz.h"
#include "tests/cli/page_commands.h"
#include "tests/cli/program.h"
#include "tests/contains.h"
#include "tests/python.h"
#include "tests/scratch.h"

namespace superstep {
namespace {

// By the script, with 4,096 nodes; "" where no Python can run it.
std::string made_by_the_script(const ScratchFolder& folder) {
  const std::string python = python_with("numpy, onnx.helper");
  if (python.empty()) return {};
  const std::string command = python + " " SUPERSTEP_SOURCE "/examples/networks/cluster_gcn.py '" +
                              (folder / "graph").string() + "' --parts 32 --part-size 128 --samples 160 > '" +
                              (folder / "said.txt").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return content_of(folder / "said.txt");
}

double number_behind(const std::string& text, const std::string& pattern) {
  std::smatch found;
  EXPECT_TRUE(std::regex_search(text, found, std::regex(pattern + R"(\s*([0-9.]+))"))) << text;
  return found.empty() ? NAN : std::stod(found[1]);
}

double metric_in(const std::filesystem::path& json, const std::string& name) {
  const auto record = nlohmann::json::parse(content_of(json));
  return (record.is_array() ? record[0] : record).at("metrics").at(name).at("value").get<double>();
}

TEST(GraphNetworkPage, ItsCommandsWork) {
  const ScratchFolder folder;
  const std::string said = made_by_the_script(folder);
  if (said.empty()) GTEST_SKIP() << "no Python with numpy, onnx: tools/setup-oracles installs them";
  const double alone = number_behind(said, "by features alone:");
  const Shape edges = data::read_npz(folder / "graph/clusters.npz").at("edge_weight").shape();
  const std::string sizes = std::to_string(edges[1]);
  const auto commands = commands_of(content_of(SUPERSTEP_SOURCE "/docs/graph-networks.md"));
  ASSERT_EQ(commands.size(), 4U);
  for (std::string command : commands) {
    command = std::regex_replace(command, std::regex("FOLDER"), "graph");
    command = std::regex_replace(command, std::regex("x=512,"), "x=256,");
    command = std::regex_replace(command, std::regex("4452"), sizes);
    if (command.starts_with("infer")) command += " --json answers.json";
    const Outcome outcome = run_program(folder / "", command);
    EXPECT_EQ(outcome.code, 0) << command << '\n' << outcome.output << outcome.errors;
    if (command.starts_with("train")) {
      EXPECT_TRUE(contains(outcome.output + outcome.errors, "trained: 6 of 6 initializers"));
    }
  }
  // Neighbours say more of a node's class than its own features do.
  EXPECT_GT(metric_in(folder / "answers.json", "accuracy"), alone + 0.1);
}

}  // namespace
}  // namespace superstep
