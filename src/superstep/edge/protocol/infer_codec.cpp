#include "superstep/edge/protocol/infer_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "superstep/edge/protocol/datatype.h"
#include "superstep/edge/protocol/request_check.h"
#include "superstep/edge/protocol/request_json.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are sent as they lie in memory");

const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* name, const std::string& where) {
  const json* value = member(object, name);
  if (!value || !value->is_string()) refuse_request(fmt::format("needs a text '{}'", name), where);
  return value->get<std::string>();
}

bool flag_member(const json& parameters, const char* name, bool otherwise) {
  const json* value = member(parameters, name);
  if (!value) return otherwise;
  if (!value->is_boolean()) refuse_request(fmt::format("'{}' is true or false", name), "parameters");
  return value->get<bool>();
}

json parameters_of(const json& object, const std::string& where) {
  const json* value = member(object, "parameters");
  if (!value) return json::object();
  if (!value->is_object()) refuse_request("'parameters' is an object", where);
  if (value->contains("shared_memory_region"))
    refuse_request("shared memory is not offered here", where, "send the tensor's data with the request");
  return *value;
}

std::vector<std::int64_t> shape_member(const json& input, const std::string& where) {
  const json* value = member(input, "shape");
  if (!value || !value->is_array() || value->size() > most_extents)
    refuse_request("needs a 'shape', a list of extents", where);
  std::vector<std::int64_t> extents;
  for (const json& extent : *value) {
    if (!extent.is_number_integer()) refuse_request("extents are whole numbers", where);
    extents.push_back(extent.is_number_unsigned() && extent.get<std::uint64_t>() > INT64_MAX
                          ? -1
                          : extent.get<std::int64_t>());
  }
  return extents;
}

// --- data of a tensor in JSON

template <class T>
T number_as(const json& value, const std::string& where) {
  if constexpr (std::is_same_v<T, bool>) {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_integer() && (value == 0 || value == 1)) return value == 1;
    refuse_request("holds something that is neither true nor false", where);
  } else if constexpr (std::is_integral_v<T>) {
    const bool whole = value.is_number_integer();
    if (whole && value.is_number_unsigned()) {
      const auto number = value.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return static_cast<T>(number);
    } else if (whole) {
      const auto number = value.get<std::int64_t>();
      if constexpr (std::is_signed_v<T>)
        if (number >= std::numeric_limits<T>::min()) return static_cast<T>(number);
    }
    refuse_request(fmt::format("holds {}, which is no {}", value.dump(), datatype_of(element_type_of<T>)),
                   where);
  } else {
    if (!value.is_number()) refuse_request("holds something that is no number", where);
    if constexpr (std::is_same_v<T, double>)
      return value.get<double>();
    else
      return T(static_cast<float>(value.get<double>()));
  }
}

// Where the numbers of one input go, one after the other.
class Filler {
 public:
  Filler(Tensor& tensor, std::string where) : tensor_(&tensor), where_(std::move(where)) {
    dispatch(tensor.type(), [&]<class T>() { put_ = &Filler::put<T>; });
  }
  void add(const json& value) { (this->*put_)(value); }
  void require_full() const {
    if (at_ < count())
      refuse_request(fmt::format("has {} values where its shape has {}", at_, count()), where_);
  }

 private:
  std::size_t count() const { return static_cast<std::size_t>(tensor_->element_count()); }
  template <class T>
  void put(const json& value) {
    if (at_ == count())
      refuse_request(fmt::format("has more than the {} values of its shape", count()), where_);
    tensor_->as<T>()[at_++] = number_as<T>(value, where_);
  }

  Tensor* tensor_;
  std::string where_;
  std::size_t at_ = 0;
  void (Filler::*put_)(const json&) = nullptr;
};

// --- a request

struct Body {
  json header;                     // without the data of tensors
  std::string_view text, tensors;  // what it was read from, and what follows
};

Body body_of(std::string_view body, std::optional<std::size_t> json_bytes) {
  const std::size_t size = json_bytes.value_or(body.size());
  if (size > body.size())
    refuse_request(fmt::format("is {}, and the body has {} bytes", size, body.size()),
                   "Inference-Header-Content-Length");
  const std::string_view text = body.substr(0, size);
  return {.header = request_header(text), .text = text, .tensors = body.substr(size)};
}

// True: its numbers are in the JSON, and not yet in the tensor.
bool fill_from_binary(const json& input, Tensor& tensor, std::string_view& tensors,
                      const std::string& where) {
  const json parameters = parameters_of(input, where);
  const json* data = member(input, "data");
  if (const json* size = member(parameters, "binary_data_size")) {
    if (data) refuse_request("has both 'data' and 'binary_data_size'", where);
    if (!size->is_number_unsigned() || size->get<std::uint64_t>() != tensor.byte_count())
      refuse_request(fmt::format("'binary_data_size' is {}; its shape takes {} bytes", size->dump(),
                                 tensor.byte_count()),
                     where);
    if (tensors.size() < tensor.byte_count()) refuse_request("the body ends before its data", where);
    std::memcpy(tensor.bytes(), tensors.data(), tensor.byte_count());
    tensors.remove_prefix(tensor.byte_count());
    check_booleans(tensor, where);
    return false;
  }
  if (!data) refuse_request("has no 'data' and no 'binary_data_size'", where);
  if (!data->is_array()) refuse_request("'data' is a list", where);
  return true;
}

// Shapes first: memory is taken when all of them are what the model takes.
std::int64_t check_inputs(const ServedPorts& ports, const json& inputs) {
  InputCheck check(ports);
  for (const json& input : inputs) {
    if (!input.is_object()) refuse_request("'inputs' is a list of objects");
    const std::string name = text_member(input, "name", "an input");
    const std::string where = fmt::format("input '{}'", name);
    check.take(name, text_member(input, "datatype", where), shape_member(input, where));
  }
  return check.rows();
}

std::vector<Tensor> read_inputs(const ServedPorts& ports, const Body& body, std::int64_t rows) {
  std::vector<Tensor> tensors(ports.inputs.size());
  std::vector<std::optional<Filler>> fillers;  // of the inputs as they stand in the request
  std::string_view rest = body.tensors;
  for (const json& input : body.header["inputs"]) {
    const std::string name = input["name"].get<std::string>(), where = fmt::format("input '{}'", name);
    const std::size_t index = input_index(ports, name);
    tensors[index] = input_tensor(ports, index, rows);
    const bool in_json = fill_from_binary(input, tensors[index], rest, where);
    fillers.push_back(in_json ? std::optional(Filler(tensors[index], where)) : std::nullopt);
  }
  if (!rest.empty())
    refuse_request(fmt::format("{} bytes are left behind the last tensor", rest.size()), "the body");
  if (std::ranges::any_of(fillers, &std::optional<Filler>::has_value))
    read_request_data(body.text,
                      [&](std::size_t input, const json& value) { fillers.at(input)->add(value); });
  for (const auto& filler : fillers)
    if (filler) filler->require_full();
  return tensors;
}

std::vector<WantedOutput> wanted_outputs(const ServedPorts& ports, const json& header, bool binary) {
  std::vector<WantedOutput> wanted;
  const json* outputs = member(header, "outputs");
  if (!outputs || outputs->is_null() || (outputs->is_array() && outputs->empty())) {
    for (std::size_t i = 0; i < ports.outputs.size(); ++i) wanted.push_back({i, binary});
    return wanted;
  }
  if (!outputs->is_array()) refuse_request("'outputs' is a list");
  for (const json& output : *outputs) {
    if (!output.is_object()) refuse_request("'outputs' is a list of objects");
    const std::string name = text_member(output, "name", "an output");
    const std::size_t index = output_index(ports, name);
    const std::string where = fmt::format("output '{}'", name);
    if (std::ranges::find(wanted, index, &WantedOutput::port) != wanted.end())
      refuse_request("is asked for twice", where);
    const json parameters = parameters_of(output, where);
    if (parameters.contains("classification")) refuse_request("'classification' is not offered here", where);
    wanted.push_back({index, flag_member(parameters, "binary_data", binary)});
  }
  return wanted;
}

std::optional<std::chrono::microseconds> timeout_of(const json& parameters) {
  const json* value = member(parameters, "timeout");
  if (!value) return std::nullopt;
  constexpr std::uint64_t most = std::chrono::microseconds(most_timeout).count();
  if (!value->is_number_unsigned() || value->get<std::uint64_t>() > most)
    refuse_request("'timeout' is a number of microseconds, at most an hour", "parameters");
  if (value->get<std::uint64_t>() == 0) return std::nullopt;  // none, as elsewhere
  return std::chrono::microseconds(value->get<std::uint64_t>());
}

// --- an answer

template <class T>
void append_numbers(std::string& text, std::span<const T> values, const std::string& where) {
  auto out = std::back_inserter(text);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += ',';
    if constexpr (std::is_same_v<T, bool>) {
      text += values[i] ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      fmt::format_to(
          out, "{}",
          static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(values[i]));
    } else {
      const auto value = [&] {
        if constexpr (std::is_same_v<T, double>)
          return values[i];
        else
          return static_cast<float>(values[i]);
      }();
      if (!std::isfinite(value))
        refuse_request("holds values that are not finite, which JSON cannot say", where,
                       "ask for binary_data");
      fmt::format_to(out, "{}", value);
    }
  }
}

std::string shape_text(const Tensor& tensor) { return to_string(tensor.shape()); }

void append_output(std::string& text, const ServedPort& port, const Tensor& tensor, bool binary) {
  fmt::format_to(std::back_inserter(text), R"({{"name":{},"datatype":"{}","shape":{},)",
                 json(port.name).dump(), datatype_of(port.element), shape_text(tensor));
  if (binary) {
    fmt::format_to(std::back_inserter(text), R"("parameters":{{"binary_data_size":{}}}}})",
                   tensor.byte_count());
    return;
  }
  text += R"("data":[)";
  dispatch(tensor.type(),
           [&]<class T>() { append_numbers(text, tensor.as<T>(), fmt::format("output '{}'", port.name)); });
  text += "]}";
}

}  // namespace

InferRequest decode_infer_request(const ServedPorts& ports, std::string_view body,
                                  std::optional<std::size_t> json_bytes,
                                  FunctionRef<void(std::int64_t rows)> admit) {
  const Body parts = body_of(body, json_bytes);
  const json* inputs = member(parts.header, "inputs");
  if (!inputs || !inputs->is_array()) refuse_request("needs 'inputs', a list", "the request");
  InferRequest request;
  if (const json* id = member(parts.header, "id")) {
    if (!id->is_string() || id->get_ref<const std::string&>().size() > longest_id)
      refuse_request("is a text of at most 1,024 bytes", "'id'");
    request.id = id->get<std::string>();
  }
  const json parameters = parameters_of(parts.header, "the request");
  request.timeout = timeout_of(parameters);
  request.outputs = wanted_outputs(ports, parts.header, flag_member(parameters, "binary_data_output", false));
  request.rows = check_inputs(ports, *inputs);
  admit(request.rows);
  request.inputs = read_inputs(ports, parts, request.rows);
  return request;
}

InferAnswer encode_infer_answer(const ServedPorts& ports, std::string_view model, std::string_view version,
                                std::string_view id, std::span<const WantedOutput> wanted,
                                std::span<const Tensor> outputs) {
  InferAnswer answer;
  std::string& text = answer.body;
  text = fmt::format(R"({{"model_name":{},"model_version":{},)", json(model).dump(), json(version).dump());
  if (!id.empty()) text += fmt::format(R"("id":{},)", json(id).dump());
  text += R"("outputs":[)";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i > 0) text += ',';
    append_output(text, ports.outputs[wanted[i].port], outputs[wanted[i].port], wanted[i].binary);
  }
  text += "]}";
  if (std::ranges::none_of(wanted, &WantedOutput::binary)) return answer;
  answer.json_bytes = text.size();
  for (const WantedOutput& output : wanted)
    if (output.binary)
      text.append(reinterpret_cast<const char*>(outputs[output.port].bytes()),
                  outputs[output.port].byte_count());
  return answer;
}

}  // namespace superstep::edge
