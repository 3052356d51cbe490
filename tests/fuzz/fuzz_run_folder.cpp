// The folder of a training run: whatever stands in its files is read, or refused with an Error; its log can
// be rewound and its records of the machine added to, and read again.
#include <cstdlib>

#include "superstep/base/error.h"
#include "superstep/run/serve/infer.h"
#include "superstep/run/train/checkpoint.h"
#include "superstep/run/train/run_directory.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_folder.h"

namespace {

using namespace superstep;

void go_on_with(const std::filesystem::path& folder) {
  const run::RunDirectory directory = run::RunDirectory::open(folder);
  attempt([&] { directory.add_environment({{"host", "fuzz"}}); });
  directory.rewind_log(3);
  const std::size_t lines = directory.read_log().size();
  directory.log({{"step", 4}});
  if (directory.read_log().size() != lines + 1) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFolder folder(
      data, size,
      {"config.json", "environment.json", "metrics.jsonl", "best.safetensors",
       "checkpoints/step-00000002.safetensors", "checkpoints/step-00000001.safetensors"});
  attempt([&] { run::load_weights(folder.path()); });
  attempt([&] { run::read_newest_checkpoint(folder.path() / "checkpoints"); });
  attempt([&] { go_on_with(folder.path()); });
  return 0;
}
