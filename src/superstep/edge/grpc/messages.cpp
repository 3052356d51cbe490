#include "superstep/edge/grpc/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "superstep/edge/protocol/datatype.h"
#include "superstep/edge/protocol/request_check.h"
#include "superstep/onnx/wire/wire.h"

namespace superstep::edge {
namespace {

using onnx::Bytes;
using onnx::FieldReader;
using onnx::Message;

// Field numbers of the protocol's messages.
namespace request {
enum { model_name = 1, model_version, id, parameters, inputs, outputs, raw_inputs };
}
namespace response {
enum { model_name = 1, model_version, id, outputs = 5, raw_outputs };
}
namespace tensor {
enum { name = 1, datatype, shape, parameters, contents };
}
namespace contents {
enum { of_bool = 1, of_int, of_int64, of_uint, of_uint64, of_fp32, of_fp64, of_bytes };
}
namespace parameter {  // a map's entry has a key (1) and a value (2), which is one of these
enum { of_bool = 1, of_int64, of_string, of_double, of_uint64 };
}

struct Parameter {
  std::string_view key;
  std::optional<std::int64_t> number;  // where it is a whole one
};

Parameter read_parameter(Bytes entry) {
  Parameter read;
  for (FieldReader fields(entry, "a parameter"); fields.next();) {
    if (fields.field() == 1) read.key = fields.text();
    if (fields.field() != 2) continue;
    for (FieldReader value(fields.bytes(), "a parameter's value"); value.next();)
      if (value.field() == parameter::of_int64 || value.field() == parameter::of_uint64)
        read.number = value.integer();
  }
  return read;
}

void refuse_parameters_not_offered(Bytes entry, const std::string& where) {
  const Parameter given = read_parameter(entry);
  if (given.key == "shared_memory_region")
    refuse_request("shared memory is not offered here", where, "send the tensor's data with the request");
  if (given.key == "classification") refuse_request("'classification' is not offered here", where);
}

void read_timeout(Bytes entry, InferRequest& request) {
  const Parameter given = read_parameter(entry);
  if (given.key != "timeout") return;
  constexpr std::int64_t most = std::chrono::microseconds(most_timeout).count();
  if (!given.number || *given.number < 0 || *given.number > most)
    refuse_request("'timeout' is a number of microseconds, at most an hour", "parameters");
  if (*given.number > 0) request.timeout = std::chrono::microseconds(*given.number);
}

// Views of the request's parts: as many as the model has ports, whatever the request says.
struct Parts {
  std::vector<Bytes> inputs, outputs, raw;
};

void add_part(std::vector<Bytes>& parts, Bytes part, std::size_t most, const char* what) {
  if (parts.size() == most) refuse_request(fmt::format("has more {} than the model, {}", what, most));
  parts.push_back(part);
}

Parts read_parts(const ServedPorts& ports, Bytes message, InferRequest& into) {
  Parts parts;
  for (FieldReader fields(message, "ModelInferRequest"); fields.next();) {
    switch (fields.field()) {
      case request::id:
        if (fields.text().size() > longest_id)
          refuse_request(fmt::format("has at most {} bytes", longest_id), "'id'");
        into.id = fields.text();
        break;
      case request::parameters: read_timeout(fields.bytes(), into); break;
      case request::inputs: add_part(parts.inputs, fields.bytes(), ports.inputs.size(), "inputs"); break;
      case request::outputs: add_part(parts.outputs, fields.bytes(), ports.outputs.size(), "outputs"); break;
      case request::raw_inputs:
        add_part(parts.raw, fields.bytes(), ports.inputs.size(), "raw_input_contents");
        break;
      default: break;
    }
  }
  return parts;
}

struct InputMessage {
  std::string name;
  std::size_t port = 0;
  std::optional<Bytes> contents;
};

InputMessage check_input(Bytes message, InputCheck& check) {
  InputMessage input;
  std::string_view datatype;
  std::vector<std::int64_t> extents;
  for (FieldReader fields(message, "InferInputTensor"); fields.next();) {
    switch (fields.field()) {
      case tensor::name: input.name = fields.text(); break;
      case tensor::datatype: datatype = fields.text(); break;
      case tensor::shape:
        fields.each_integer([&](std::int64_t extent) {
          if (extents.size() == most_extents)
            refuse_request(fmt::format("a shape has at most {} extents", most_extents));
          extents.push_back(extent);
        });
        break;
      case tensor::parameters: refuse_parameters_not_offered(fields.bytes(), "an input"); break;
      case tensor::contents: input.contents = fields.bytes(); break;
      default: break;
    }
  }
  input.port = check.take(input.name, datatype, extents);
  return input;
}

void fill_raw(Bytes raw, Tensor& values, const std::string& where) {
  if (raw.size() != values.byte_count())
    refuse_request(fmt::format("has {} bytes; its shape takes {}", raw.size(), values.byte_count()), where);
  if (!raw.empty()) std::memcpy(values.bytes(), raw.data(), raw.size());
  check_booleans(values, where);
}

int contents_of(ElementType type) {
  switch (type) {
    case ElementType::boolean: return contents::of_bool;
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::i32: return contents::of_int;
    case ElementType::i64: return contents::of_int64;
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32: return contents::of_uint;
    case ElementType::u64: return contents::of_uint64;
    case ElementType::f32: return contents::of_fp32;
    case ElementType::f64: return contents::of_fp64;
    default: return 0;
  }
}

template <class T>
void fill_field(const FieldReader& field, std::span<T> values, std::size_t& at, const std::string& where) {
  const auto add = [&](auto value) {
    if (at == values.size())
      refuse_request(fmt::format("has more than the {} values of its shape", values.size()), where);
    if constexpr (sizeof(T) < 8 && std::is_integral_v<T> && !std::is_same_v<T, bool>)
      if (!std::in_range<T>(value))
        refuse_request(fmt::format("holds {}, which is no {}", value, datatype_of(element_type_of<T>)),
                       where);
    values[at++] = static_cast<T>(value);
  };
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    field.each_fixed<T>(add);
  else
    field.each_integer(add);
}

void fill_typed(Bytes message, Tensor& values, const std::string& where) {
  const int wanted = contents_of(values.type());
  if (wanted == 0)
    refuse_request(fmt::format("is {}, which goes as raw_input_contents alone", datatype_of(values.type())),
                   where);
  std::size_t at = 0;
  for (FieldReader fields(message, "InferTensorContents"); fields.next();) {
    if (fields.field() != wanted)
      refuse_request(fmt::format("holds another field than the one for {}", datatype_of(values.type())),
                     where);
    dispatch(values.type(), [&]<class T>() {
      if constexpr (std::is_arithmetic_v<T>) fill_field(fields, values.as<T>(), at, where);
    });
  }
  if (at < static_cast<std::size_t>(values.element_count()))
    refuse_request(fmt::format("has {} values where its shape has {}", at, values.element_count()), where);
}

std::vector<WantedOutput> wanted_outputs(const ServedPorts& ports, const std::vector<Bytes>& outputs) {
  std::vector<WantedOutput> wanted;
  for (const Bytes output : outputs) {
    std::string name;
    for (FieldReader fields(output, "InferRequestedOutputTensor"); fields.next();) {
      if (fields.field() == 1) name = fields.text();
      if (fields.field() == 2) refuse_parameters_not_offered(fields.bytes(), "an output");
    }
    const std::size_t index = output_index(ports, name);
    if (std::ranges::find(wanted, index, &WantedOutput::port) != wanted.end())
      refuse_request("is asked for twice", fmt::format("output '{}'", name));
    wanted.push_back({index, true});
  }
  for (std::size_t i = 0; outputs.empty() && i < ports.outputs.size(); ++i) wanted.push_back({i, true});
  return wanted;
}

InferRequest decode(const ServedPorts& ports, Bytes message, FunctionRef<void(std::int64_t rows)> admit) {
  InferRequest result;
  const Parts parts = read_parts(ports, message, result);
  InputCheck check(ports);
  std::vector<InputMessage> inputs;
  for (const Bytes input : parts.inputs) inputs.push_back(check_input(input, check));
  result.rows = check.rows();
  result.outputs = wanted_outputs(ports, parts.outputs);
  if (!parts.raw.empty() && parts.raw.size() != inputs.size())
    refuse_request(fmt::format("are {}, of {} inputs", parts.raw.size(), inputs.size()),
                   "raw_input_contents");
  admit(result.rows);
  result.inputs.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string where = fmt::format("input '{}'", inputs[i].name);
    Tensor& values = result.inputs[inputs[i].port];
    values = input_tensor(ports, inputs[i].port, result.rows);
    if (!parts.raw.empty() && inputs[i].contents)
      refuse_request("has both contents and raw_input_contents", where);
    if (parts.raw.empty())
      fill_typed(inputs[i].contents.value_or(Bytes{}), values, where);
    else
      fill_raw(parts.raw[i], values, where);
  }
  return result;
}

// A message that is not whole is the sender's fault, not a file's.
template <class Read>
auto as_request(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file) throw;
    refuse_request(error.message());
  }
}

std::string_view bytes_of(const Tensor& values) {
  return {reinterpret_cast<const char*>(values.bytes()), values.byte_count()};
}

Message port_message(const ServedPort& port, bool batched) {
  std::vector<std::int64_t> shape = port.shape.extents();
  if (batched) shape.insert(shape.begin(), -1);
  Message message;
  message.text(tensor::name, port.name).text(tensor::datatype, datatype_of(port.element));
  return message.packed_integers(tensor::shape, shape);
}

}  // namespace

ModelName decode_model_name(Bytes message) {
  return as_request([&] {
    ModelName name;
    for (FieldReader fields(message, "the request"); fields.next();) {
      if (fields.field() == request::model_name) name.name = fields.text();
      if (fields.field() == request::model_version) name.version = fields.text();
    }
    return name;
  });
}

InferRequest decode_infer_message(const ServedPorts& ports, Bytes message,
                                  FunctionRef<void(std::int64_t rows)> admit) {
  return as_request([&] { return decode(ports, message, admit); });
}

std::string encode_flag(bool value) { return Message().integer(1, value ? 1 : 0).bytes(); }

std::string encode_server_metadata(std::string_view version, const std::vector<std::string>& extensions) {
  Message message;
  message.text(1, "superstep").text(2, version);
  for (const std::string& extension : extensions) message.text(3, extension);
  return message.bytes();
}

std::string encode_model_metadata(const ModelService& model, const Version& version) {
  Message message;
  message.text(1, model.name()).text(2, version.id());
  if (const auto former = model.former(); former && former->id() != version.id())
    message.text(2, former->id());
  message.text(3, "superstep");
  const ServedPorts& ports = version.ports();
  for (const ServedPort& port : ports.inputs) message.message(4, port_message(port, ports.batched));
  for (const ServedPort& port : ports.outputs) message.message(5, port_message(port, ports.batched));
  return message.bytes();
}

std::string encode_infer_message(const Inference::Answer& answer) {
  Message message;
  message.text(response::model_name, answer.model).text(response::model_version, answer.version->id());
  if (!answer.id.empty()) message.text(response::id, answer.id);
  for (const WantedOutput& wanted : answer.wanted) {
    const ServedPort& port = answer.version->ports().outputs[wanted.port];
    Message output;
    output.text(tensor::name, port.name).text(tensor::datatype, datatype_of(port.element));
    message.message(response::outputs,
                    output.packed_integers(tensor::shape, answer.outputs[wanted.port].shape().extents()));
  }
  for (const WantedOutput& wanted : answer.wanted)
    message.text_in_place(response::raw_outputs, bytes_of(answer.outputs[wanted.port]));
  return message.bytes();
}

std::string encode_stream_answer(std::string_view infer_message) {
  return Message().text_in_place(2, infer_message).bytes();
}

std::string encode_stream_failure(std::string_view message, std::string_view id) {
  Message answer;
  answer.text(1, message);
  if (!id.empty()) answer.message(2, Message().text(response::id, id));
  return answer.bytes();
}

}  // namespace superstep::edge
