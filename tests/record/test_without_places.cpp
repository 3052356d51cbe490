// Results that are passed on say nothing of where they were measured.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "superstep/record/environment.h"
#include "superstep/record/result_json.h"
#include "superstep/record/without_places.h"
#include "tests/contains.h"

namespace superstep::record {
namespace {

TEST(WithoutPlaces, LeavesOutNamesOfTheMachineAndFolders) {
  Result result{.command = "infer", .workload = "/secret/place/model.onnx"};
  result.config = {{"weights", "/secret/place/run/"},
                   {"list", {"peaks=/secret/place/a.h5,/secret/b.h5", "kept/as/it/is.h5", 3}},
                   {"home", "~/secret/file.npy"}};
  result.folder = "/secret/place/run";
  result.environment = {{"host", {{"hostname", "secret-host"}, {"cores", 2}}}, {"hostname", "secret-host"}};
  const Result shared = without_places(result);
  EXPECT_EQ(shared.workload, "model.onnx");
  EXPECT_EQ(shared.config["weights"], "run");
  EXPECT_EQ(shared.config["list"][0], "peaks=a.h5,b.h5");
  EXPECT_EQ(shared.config["list"][1], "kept/as/it/is.h5");
  EXPECT_EQ(shared.config["home"], "file.npy");
  EXPECT_EQ(shared.folder, "run");
  EXPECT_EQ(shared.environment["host"]["cores"], 2);
  const std::string text = write_results({shared});
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
}

}  // namespace
}  // namespace superstep::record
