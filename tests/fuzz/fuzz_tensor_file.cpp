// A tensor in a file of its own, as ONNX test cases hold them, and its elements in a file beside it: any
// bytes are a tensor, or refused with an Error.
#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/onnx/model.h"
#include "superstep/onnx/wire/tensor_data.h"
#include "tests/fuzz/attempt.h"
#include "tests/fuzz/input_folder.h"

namespace {

using namespace superstep;

void read_with_data_beside(const std::filesystem::path& folder) {
  const std::string text = read_text_file(folder / "tensor.pb");
  const onnx::ExternalData beside(folder);
  const auto bytes = std::as_bytes(std::span(text));
  attempt([&] { onnx::read_tensor(onnx::parse_tensor(bytes), beside); });
  attempt([&] { onnx::read_sparse_tensor(onnx::parse_sparse_tensor(bytes), beside); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const InputFolder folder(data, size, {"tensor.pb", "w.bin"});
  attempt([&] { onnx::read_tensor_file(folder.path() / "tensor.pb"); });
  attempt([&] { read_with_data_beside(folder.path()); });
  return 0;
}
