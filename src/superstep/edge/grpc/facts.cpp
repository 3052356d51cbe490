#include "superstep/edge/grpc/facts.h"

#include "superstep/base/error.h"
#include "superstep/onnx/wire/wire.h"

namespace superstep::edge {
namespace {

using onnx::Message;

// Of Triton's model_config.proto and grpc_service.proto.
namespace config {
enum { name = 1, platform, max_batch_size = 4, input, output, parameters = 14 };
}
namespace statistics {
enum { name = 1, version, inference_count = 4, execution_count, inference_stats, batch_stats };
}
namespace times {
enum { success = 1, fail, queue, compute_infer = 5 };
}
namespace batch {
enum { size = 1, compute_infer = 3 };
}
namespace model_index {
enum { name = 1, version, state, reason };
}

int data_type_of(ElementType type) {
  switch (type) {
    case ElementType::boolean: return 1;
    case ElementType::u8: return 2;
    case ElementType::u16: return 3;
    case ElementType::u32: return 4;
    case ElementType::u64: return 5;
    case ElementType::i8: return 6;
    case ElementType::i16: return 7;
    case ElementType::i32: return 8;
    case ElementType::i64: return 9;
    case ElementType::f16: return 10;
    case ElementType::f32: return 11;
    case ElementType::f64: return 12;
    case ElementType::bf16: return 14;
  }
  return 0;
}

// ModelInput has its extents in field 4, ModelOutput in 3.
Message port_message(const ServedPort& port, int extents_field) {
  Message message;
  message.text(1, port.name).integer(2, data_type_of(port.element));
  return message.packed_integers(extents_field, port.shape.extents());
}

Message parameter(const char* key, const std::string& value) {
  return Message().text(1, key).message(2, Message().text(1, value));
}

Message duration(std::uint64_t count, std::uint64_t nanoseconds) {
  return Message()
      .integer(1, static_cast<std::int64_t>(count))
      .integer(2, static_cast<std::int64_t>(nanoseconds));
}
Message duration(const Durations& of) { return duration(of.count(), of.nanoseconds()); }

Message statistics_of(const ModelService& model) {
  const Account account = model.batcher().account();
  const ServiceTimes all = model.batcher().times();
  std::uint64_t unserved = 0;
  for (const Outcome outcome : all_outcomes)
    if (outcome != Outcome::served) unserved += account.of(outcome).requests;
  const auto version = model.current();
  Message message;
  message.text(statistics::name, model.name()).text(statistics::version, version ? version->id() : "");
  message.integer(statistics::inference_count, static_cast<std::int64_t>(account.of(Outcome::served).rows))
      .integer(statistics::execution_count, static_cast<std::int64_t>(all.compute.count()));
  message.message(statistics::inference_stats, Message()
                                                   .message(times::success, duration(all.total))
                                                   .message(times::fail, duration(unserved, 0))
                                                   .message(times::queue, duration(all.queue))
                                                   .message(times::compute_infer, duration(all.compute)));
  for (const auto& [rows, durations] : all.by_rows)
    message.message(statistics::batch_stats,
                    Message().integer(batch::size, rows).message(batch::compute_infer, duration(durations)));
  return message;
}

}  // namespace

std::string encode_model_config(const ModelService& model, const Version& version) {
  const ServedPorts& ports = version.ports();
  Message message;
  message.text(config::name, model.name()).text(config::platform, "superstep");
  message.integer(config::max_batch_size, ports.batched ? version.max_batch() : 0);
  for (const ServedPort& port : ports.inputs) message.message(config::input, port_message(port, 4));
  for (const ServedPort& port : ports.outputs) message.message(config::output, port_message(port, 3));
  message.message(config::parameters, parameter("version", version.id()));
  message.message(config::parameters, parameter("sha256", version.digest()));
  return Message().message(1, message).bytes();
}

std::string encode_model_statistics(const Repository& repository, const ModelService* model) {
  Message message;
  for (const auto& [name, service] : repository.models())
    if (!model || service.get() == model) message.message(1, statistics_of(*service));
  return message.bytes();
}

bool decode_only_ready(onnx::Bytes message) {
  bool only_ready = false;
  try {
    for (onnx::FieldReader fields(message, "RepositoryIndexRequest"); fields.next();)
      if (fields.field() == 2) only_ready = fields.integer() != 0;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_file) throw;
    throw Error(ErrorCode::invalid_argument, error.message(), "RepositoryIndexRequest");
  }
  return only_ready;
}

std::string encode_repository_index(const Repository& repository, bool only_ready) {
  Message message;
  for (const auto& [name, model] : repository.models()) {
    const auto version = model->current();
    if (only_ready && !version) continue;
    Message one;
    one.text(model_index::name, name).text(model_index::version, version ? version->id() : "");
    one.text(model_index::state, version ? "READY" : "UNAVAILABLE");
    message.message(1, one.text(model_index::reason, version ? "" : "unloaded"));
  }
  return message.bytes();
}

}  // namespace superstep::edge
