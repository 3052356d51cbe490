// Any bytes are refused with an Error, or are a checkpoint that is written and read again the same.
#include <cstdlib>
#include <cstring>

#include "superstep/base/error.h"
#include "superstep/run/train/checkpoint.h"
#include "tests/fuzz/input_folder.h"

namespace {

using namespace superstep;

bool same(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         std::memcmp(a.bytes(), b.bytes(), a.byte_count()) == 0;
}

bool same(const run::Checkpoint& a, const run::Checkpoint& b) {
  if (a.step != b.step || a.workload != b.workload || a.signature != b.signature) return false;
  if (a.states.size() != b.states.size()) return false;
  for (const auto& [name, tensor] : a.states)
    if (!b.states.contains(name) || !same(tensor, b.states.at(name))) return false;
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFolder folder(data, size, {"read.safetensors"});
  try {
    const run::Checkpoint read = run::read_checkpoint(folder.path() / "read.safetensors");
    run::write_checkpoint_file(folder.path() / "written.safetensors", read);
    if (!same(read, run::read_checkpoint(folder.path() / "written.safetensors"))) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
