#include <fmt/format.h>

#include <future>

#include "superstep/edge/grpc/client.h"
#include "superstep/edge/load/target.h"
#include "superstep/edge/protocol/datatype.h"
#include "superstep/onnx/wire/wire.h"
#include "superstep/onnx/wire/wire_reader.h"

namespace superstep::edge {
namespace {

using onnx::FieldReader;
using onnx::Message;

// Fields of the protocol's messages.
enum { model_name = 1 };                                           // of every request
enum { name = 1, datatype, shape };                                // of a tensor
enum { metadata_versions = 2, metadata_inputs = 4 };               // ModelMetadataResponse
enum { request_inputs = 5, request_outputs, request_raw_inputs };  // ModelInferRequest

LoadPort read_port(onnx::Bytes message) {
  LoadPort port;
  std::string type;
  for (FieldReader fields(message, "TensorMetadata"); fields.next();) {
    if (fields.field() == name) port.name = fields.text();
    if (fields.field() == datatype) type = fields.text();
    if (fields.field() == shape) fields.append(port.extents);
  }
  port.element = element_of(type, port.name);
  return port;
}

void read_metadata(const std::string& answer, LoadTarget& target) {
  for (FieldReader fields(std::as_bytes(std::span(answer)), "ModelMetadataResponse"); fields.next();) {
    if (fields.field() == metadata_versions && target.version.empty()) target.version = fields.text();
    if (fields.field() == metadata_inputs) target.inputs.push_back(read_port(fields.bytes()));
  }
}

}  // namespace

void ask_inputs_over_grpc(LoadTarget& target) {
  std::promise<std::pair<int, std::string>> answered;
  const std::unique_ptr<GrpcClient> client = open_grpc_client(target.secure, target.access);
  const std::unique_ptr<GrpcChannel> channel = client->connect(target.host + ":" + target.port);
  channel->call("ModelMetadata", Message().text(model_name, target.model).bytes(),
                [&](int status, const std::string& answer) {
                  answered.set_value({status, answer});
                });
  std::future<std::pair<int, std::string>> future = answered.get_future();
  if (future.wait_for(std::chrono::seconds(10)) != std::future_status::ready)
    throw Error(ErrorCode::io, "does not answer", target.url());
  const auto [status, answer] = future.get();
  if (status != 200)
    throw Error(status == 404 ? ErrorCode::not_found : ErrorCode::bad_file,
                fmt::format("answers with status {}: {}", status, answer.substr(0, 200)),
                target.url() + "/" + target.model);
  read_metadata(answer, target);
}

std::string infer_message_for_grpc(const LoadTarget& target, std::int64_t rows, std::uint64_t seed) {
  RandomStream random(seed);
  Message message;
  message.text(model_name, target.model);
  std::vector<Tensor> tensors;
  for (const LoadPort& port : target.inputs) {
    tensors.push_back(random_values(port, rows, random));
    message.message(request_inputs, Message()
                                        .text(name, port.name)
                                        .text(datatype, datatype_of(port.element))
                                        .packed_integers(shape, extents_of(port, rows)));
  }
  for (const Tensor& values : tensors)
    message.text_in_place(request_raw_inputs,
                          {reinterpret_cast<const char*>(values.bytes()), values.byte_count()});
  return message.bytes();
}

}  // namespace superstep::edge
