#include "superstep/file/hdf5/hdf5_served.h"
#include "superstep/file/hdf5/pytables.h"

namespace superstep::data {

using hdf5::Request;

struct PandasFile::State {
  hdf5::ServedFile file;
};

PandasFile::PandasFile(const std::filesystem::path& path) : state_(new State{hdf5::ServedFile(path)}) {}
PandasFile::~PandasFile() = default;
PandasFile::PandasFile(PandasFile&&) noexcept = default;

std::vector<std::string> PandasFile::keys() const {
  MessageWriter request;
  request.put(Request::frame_keys);
  const ChildAnswer answer = state_->file.ask(std::move(request));
  return MessageReader(answer.bytes).texts();
}

std::int64_t PandasFile::rows(const std::string& key) const {
  MessageWriter request;
  request.put(Request::frame_rows).put(std::string_view(key));
  const ChildAnswer answer = state_->file.ask(std::move(request));
  return MessageReader(answer.bytes).get<std::int64_t>();
}

PandasFrame PandasFile::read(const std::string& key, std::int64_t first, std::int64_t count) const {
  MessageWriter request;
  request.put(Request::frame_read).put(std::string_view(key)).put(first).put(count);
  const ChildAnswer answer = state_->file.ask(std::move(request));
  MessageReader in(answer.bytes);
  PandasFrame frame;
  frame.columns = in.texts();
  for (auto left = in.get<std::uint64_t>(); left > 0; --left) {
    std::string name = in.text();
    frame.text[std::move(name)] = in.texts();
  }
  frame.values = hdf5::get_tensor(in, answer.block);
  return frame;
}

}  // namespace superstep::data
