#include "superstep/file/hdf5/hdf5_served.h"

#include <fmt/format.h>

#include "superstep/file/hdf5/hdf5_direct.h"

namespace superstep::data::hdf5 {

ServedFile::ServedFile(const std::filesystem::path& path) : path_(path) {
  ask(std::move(MessageWriter().put(Request::open)));
}

void ServedFile::start() const {
  std::error_code none;
  const std::uintmax_t size = std::filesystem::file_size(path_, none);  // of no file: refused by the child
  const double seconds =
      seconds_a_request + (none ? 0 : static_cast<double>(size) / described_bytes_a_second);
  const Entry entry;  // no other thread is in the library while it is copied
  H5open();           // once, and not in every child
  child_ = std::make_unique<GuardedChild>(answers_about(path_), memory_of_the_reader, seconds);
}

std::expected<ChildAnswer, std::string> ServedFile::answer_to(std::string_view request) const {
  try {
    if (!child_) start();
    return child_->ask(request);
  } catch (const Error& error) {  // no child could be started, or the user wants to stop
    child_.reset();
    throw error.in(path_.string());
  }
}

ChildAnswer ServedFile::ask(MessageWriter request) const {
  const std::lock_guard lock(mutex_);
  std::expected<ChildAnswer, std::string> answer = std::unexpected(end_);
  if (end_.empty()) answer = answer_to(request.take());
  if (!answer) {
    end_ = answer.error();
    child_.reset();
    throw Error(ErrorCode::bad_file,
                fmt::format("the file is damaged: the HDF5 library {} when it read it", end_), path_.string(),
                "copy or generate it again");
  }
  MessageReader message(answer->bytes);
  if (message.flag()) {
    answer->bytes.erase(0, 1);
    return std::move(*answer);
  }
  const auto code = message.get<ErrorCode>();
  const std::string what = message.text(), where = message.text(), hint = message.text();
  throw Error(code, what, where, hint);
}

void put_tensor_head(MessageWriter& message, const Tensor& tensor) {
  message.put(tensor.type()).put(std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end()));
}

Tensor get_tensor(MessageReader& message, const SharedBlock& block) {
  const auto type = message.get<ElementType>();
  Shape shape{message.numbers<std::int64_t>()};
  if (static_cast<std::size_t>(shape.element_count()) * size_in_bytes(type) != block.size())
    throw Error(ErrorCode::bad_file, "a child process sent another tensor than it said");
  if (block.size() == 0) return Tensor(type, std::move(shape));
  return Tensor::over(type, std::move(shape), block.memory());
}

namespace {

void put_info(MessageWriter& out, const DataSetInfo& info) {
  out.put(std::string_view(info.name));
  out.put(std::vector<std::int64_t>(info.shape.begin(), info.shape.end()));
  out.put(info.type.has_value()).put(info.type.value_or(ElementType::f32));
  out.put(std::string_view(info.type_name)).put(info.complex);
}

void put_attributes(MessageWriter& out, const std::map<std::string, Attribute>& attributes) {
  out.put(static_cast<std::uint64_t>(attributes.size()));
  for (const auto& [name, value] : attributes) {
    out.put(std::string_view(name)).put(static_cast<std::uint8_t>(value.index()));
    std::visit(
        [&out]<class T>(const T& held) {
          if constexpr (std::is_same_v<T, std::string>)
            out.put(std::string_view(held));
          else
            out.put(held);
        },
        value);
  }
}

void put_place(MessageWriter& out, const std::optional<DataSetPlace>& place) {
  out.put(place.has_value());
  if (!place) return;
  out.put(std::string_view(place->file.native())).put(place->element_bytes).put(place->begin);
  out.put(place->chunk).put(place->at).put(place->stored).put(place->shuffled).put(place->deflated);
}

void put_texts(MessageWriter& out, const std::vector<std::string>& texts) {
  out.put(static_cast<std::uint64_t>(texts.size()));
  for (const std::string& text : texts) out.put(std::string_view(text));
}

SharedBlock put_tensor(MessageWriter& out, const SharedTensor& read) {
  put_tensor_head(out, read.tensor);
  return read.block;
}

SharedBlock answer_read(const DirectFile& file, Request request, MessageReader& in, MessageWriter& out) {
  const std::string name = in.text();
  const auto type = in.get<ElementType>();
  if (request == Request::read) return put_tensor(out, file.read(name, type));
  const auto first = in.numbers<std::int64_t>(), count = in.numbers<std::int64_t>();
  if (request == Request::read_rows) return put_tensor(out, file.read_rows(name, type, first[0], count[0]));
  return put_tensor(out, file.read_block(name, type, first, count));
}

SharedBlock answer_frame(const DirectFile& file, MessageReader& in, MessageWriter& out) {
  const std::string key = in.text();
  const auto first = in.get<std::int64_t>(), count = in.get<std::int64_t>();
  const SharedFrame read = read_frame(file, key, first, count);
  put_texts(out, read.frame.columns);
  out.put(static_cast<std::uint64_t>(read.frame.text.size()));
  for (const auto& [name, texts] : read.frame.text) {
    out.put(std::string_view(name));
    put_texts(out, texts);
  }
  return put_tensor(out, read.values);
}

SharedBlock answer(const DirectFile& file, MessageReader& in, MessageWriter& out) {
  switch (const auto request = in.get<Request>()) {
    case Request::open: break;
    case Request::data_sets: {
      const std::vector<DataSetInfo> infos = file.data_sets();
      out.put(static_cast<std::uint64_t>(infos.size()));
      for (const DataSetInfo& info : infos) put_info(out, info);
      break;
    }
    case Request::contains: out.put(file.contains(in.text())); break;
    case Request::info: put_info(out, file.info(in.text())); break;
    case Request::read:
    case Request::read_rows:
    case Request::read_block: return answer_read(file, request, in, out);
    case Request::place_of: put_place(out, file.place_of(in.text())); break;
    case Request::read_strings: put_texts(out, file.read_strings(in.text())); break;
    case Request::attributes: put_attributes(out, file.attributes(in.text())); break;
    case Request::frame_keys: put_texts(out, frame_keys(file)); break;
    case Request::frame_rows: out.put(frame_rows(file, in.text())); break;
    case Request::frame_read: return answer_frame(file, in, out);
  }
  return {};
}

ChildAnswer refusal(const Error& error) {
  MessageWriter out;
  out.put(false).put(error.code());
  out.put(std::string_view(error.message())).put(std::string_view(error.where()));
  out.put(std::string_view(error.hint()));
  return {out.take(), {}};
}

}  // namespace

GuardedChild::Serve answers_about(const std::filesystem::path& path) {
  // What is open lives in the child alone: this process only copies the empty pointer.
  return [path, file = std::shared_ptr<DirectFile>()](std::string_view request) mutable -> ChildAnswer {
    try {
      silence_library();
      if (!file) file = std::make_shared<DirectFile>(path);
      MessageReader in(request);
      MessageWriter out;
      out.put(true);
      SharedBlock block = answer(*file, in, out);
      return {out.take(), std::move(block)};
    } catch (const Error& error) {
      return refusal(error);
    } catch (const std::bad_alloc&) {
      return refusal(
          Error(ErrorCode::bad_file, "reading it takes more memory than its size allows for", path.string()));
    } catch (const std::exception& error) {
      return refusal(Error(ErrorCode::bad_file, error.what(), path.string()));
    }
  };
}

}  // namespace superstep::data::hdf5
