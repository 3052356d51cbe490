#include "superstep/edge/load/target.h"

#include <fmt/format.h>

#include <boost/asio.hpp>
#include <boost/beast.hpp>
#include <boost/beast/ssl.hpp>
#include <nlohmann/json.hpp>

#include "superstep/base/json.h"
#include "superstep/edge/load/secure.h"
#include "superstep/edge/protocol/datatype.h"

namespace superstep::edge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using nlohmann::json;

struct Reply {
  int status = 0;
  std::string body;
};

std::string authorization(const LoadTarget& target) { return "Bearer " + target.access.token; }

template <class Stream>
Reply exchange(Stream& stream, const LoadTarget& target, http::verb verb, const std::string& path) {
  http::request<http::string_body> request(verb, path, 11);
  request.set(http::field::host, target.host);
  if (!target.access.token.empty()) request.set(http::field::authorization, authorization(target));
  request.keep_alive(false);
  request.prepare_payload();
  http::write(stream, request);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(std::size_t{16} << 20);
  http::read(stream, buffer, parser);
  return {static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
}

Reply ask(const LoadTarget& target, http::verb verb, const std::string& path) {
  try {
    asio::io_context context;
    asio::ip::tcp::resolver resolver(context);
    const auto endpoints = resolver.resolve(target.host, target.port);
    if (!target.secure) {
      beast::tcp_stream stream(context);
      stream.connect(endpoints);
      return exchange(stream, target, verb, path);
    }
    const auto tls = client_tls(target.access);
    beast::ssl_stream<beast::tcp_stream> stream(context, *tls);
    beast::get_lowest_layer(stream).connect(endpoints);
    begin_tls(stream, target);
    return exchange(stream, target, verb, path);
  } catch (const boost::system::system_error& error) {
    throw Error(ErrorCode::io, "does not answer: " + error.code().message(), target.url() + path,
                target.secure ? "is it its certificate that --tls-ca is to trust?"
                              : "start the server first: superstep serve MODEL");
  }
}

json ask_json(const LoadTarget& target, http::verb verb, const std::string& path) {
  const Reply reply = ask(target, verb, path);
  json value = parse_json(reply.body);
  if (reply.status != 200 || value.is_discarded())
    throw Error(reply.status == 404 ? ErrorCode::not_found : ErrorCode::bad_file,
                fmt::format("answers with status {}: {}", reply.status, reply.body.substr(0, 200)),
                target.url() + path);
  return value;
}

std::string only_model(const LoadTarget& target) {
  const json index = ask_json(target, http::verb::post, "/v2/repository/index");
  std::vector<std::string> names;
  for (const json& model : index) names.push_back(model.at("name").get<std::string>());
  if (names.size() != 1)
    throw Error(ErrorCode::invalid_argument, fmt::format("serves {}", fmt::join(names, ", ")), target.url(),
                "give its address with /v2/models/NAME");
  return names.front();
}

[[noreturn]] void refuse_address(const std::string& url) {
  throw Error(ErrorCode::invalid_argument, "is no address of a served model", url,
              "give http://HOST:PORT, http://HOST:PORT/v2/models/NAME, or grpc://HOST:PORT/NAME; https and "
              "grpcs with TLS");
}

LoadTarget parse(const std::string& url) {
  constexpr std::string_view models = "/v2/models/";
  const std::size_t colons = url.find("://");
  const std::string scheme = colons == std::string::npos ? "http" : url.substr(0, colons);
  std::string_view rest = url;
  if (colons != std::string::npos) rest.remove_prefix(colons + 3);
  const bool secure = scheme == "https" || scheme == "grpcs";
  if (!secure && scheme != "http" && scheme != "grpc") refuse_address(url);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t colon = authority.rfind(':');
  const bool over_grpc = scheme.starts_with("grpc");
  LoadTarget target{.host = std::string(authority.substr(0, colon)),
                    .port = over_grpc ? "8001"
                            : secure  ? "443"
                                      : "80",
                    .transport = over_grpc ? Transport::grpc : Transport::http,
                    .secure = secure};
  if (colon != std::string_view::npos) target.port = std::string(authority.substr(colon + 1));
  if (path.starts_with(models))
    target.model = std::string(path.substr(models.size()));
  else if (over_grpc && !path.empty())
    target.model = std::string(path.substr(1));
  if (target.host.empty() || target.model.find('/') != std::string::npos ||
      target.model.empty() != (path.empty() && !over_grpc))
    refuse_address(url);
  return target;
}

std::int64_t count_of(const LoadPort& port, std::int64_t rows) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents_of(port, rows)) count *= extent;
  return count;
}

json data_of(const Tensor& values) {
  json data = json::array();
  for (std::int64_t i = 0; i < values.element_count(); ++i) {
    if (values.type() == ElementType::boolean)
      data.push_back(values.at(i) != 0);
    else if (is_floating(values.type()))
      data.push_back(static_cast<float>(values.at(i)));
    else
      data.push_back(static_cast<std::int64_t>(values.at(i)));
  }
  return data;
}

}  // namespace

ElementType element_of(const std::string& datatype, const std::string& name) {
  for (const ElementType type : all_element_types)
    if (datatype == datatype_of(type)) return type;
  throw Error(ErrorCode::unsupported, fmt::format("takes {}, which no load is made of", datatype), name);
}

Tensor random_values(const LoadPort& port, std::int64_t rows, RandomStream& random) {
  Tensor values(port.element, Shape{count_of(port, rows)});
  if (is_floating(port.element))
    for (std::int64_t i = 0; i < values.element_count(); ++i) values.set(i, random.normal());
  return values;
}

std::vector<std::int64_t> extents_of(const LoadPort& port, std::int64_t rows) {
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < port.extents.size(); ++i)
    extents.push_back(port.extents[i] >= 0 ? port.extents[i] : i == 0 ? rows : 1);
  return extents;
}

std::string LoadTarget::url() const {
  return fmt::format("{}{}://{}:{}", transport == Transport::grpc ? "grpc" : "http", secure ? "s" : "", host,
                     port);
}

LoadTarget open_target(const std::string& url, const ClientAccess& access) {
  LoadTarget target = parse(url);
  target.access = access;
  if (!target.secure && (!access.ca.empty() || !access.certificate.empty() || !access.key.empty()))
    throw Error(ErrorCode::invalid_argument, "has no certificates: it is asked in the clear", url,
                "give an address with https or grpcs");
  if (target.transport == Transport::grpc) {
    ask_inputs_over_grpc(target);
    return target;
  }
  try {
    if (target.model.empty()) target.model = only_model(target);
    const json metadata = ask_json(target, http::verb::get, "/v2/models/" + target.model);
    if (metadata.contains("versions") && !metadata["versions"].empty())
      target.version = metadata["versions"][0].get<std::string>();
    for (const json& input : metadata.at("inputs")) {
      const auto name = input.at("name").get<std::string>();
      target.inputs.push_back({.name = name,
                               .element = element_of(input.at("datatype").get<std::string>(), name),
                               .extents = input.at("shape").get<std::vector<std::int64_t>>()});
    }
  } catch (const json::exception& error) {
    throw Error(ErrorCode::bad_file, fmt::format("does not speak the protocol: {}", error.what()), url);
  }
  return target;
}

ServerTimes server_times(const LoadTarget& target) {
  ServerTimes times;
  if (target.transport == Transport::grpc) return times;
  const Reply reply = ask(target, http::verb::get, fmt::format("/v2/models/{}/stats", target.model));
  const json value = parse_json(reply.body);
  if (reply.status != 200 || value.is_discarded()) return times;
  try {
    const json& stats = value.at("model_stats").at(0);
    times.rows = stats.at("inference_count").get<std::uint64_t>();
    times.batches = stats.at("execution_count").get<std::uint64_t>();
    const json& of = stats.at("inference_stats");
    times.requests = of.at("success").at("count").get<std::uint64_t>();
    times.queue = of.at("queue").at("ns").get<double>() * 1e-9;
    times.compute = of.at("compute_infer").at("ns").get<double>() * 1e-9;
  } catch (const json::exception&) {
    return {};  // another server's form
  }
  return times;
}

std::string infer_message(const LoadTarget& target, std::int64_t rows, bool binary, std::uint64_t seed) {
  if (target.transport == Transport::grpc) return infer_message_for_grpc(target, rows, seed);
  RandomStream random(seed);
  json inputs = json::array();
  std::string tensors;
  for (const LoadPort& port : target.inputs) {
    const Tensor values = random_values(port, rows, random);
    json input{
        {"name", port.name}, {"datatype", datatype_of(port.element)}, {"shape", extents_of(port, rows)}};
    if (binary) {
      input["parameters"] = {{"binary_data_size", values.byte_count()}};
      tensors.append(reinterpret_cast<const char*>(values.bytes()), values.byte_count());
    } else {
      input["data"] = data_of(values);
    }
    inputs.push_back(std::move(input));
  }
  json request{{"inputs", inputs}};
  if (binary) request["parameters"] = {{"binary_data_output", true}};
  const std::string text = request.dump();
  std::string headers = binary ? fmt::format("Inference-Header-Content-Length: {}\r\n", text.size()) : "";
  if (!target.access.token.empty()) headers += fmt::format("Authorization: {}\r\n", authorization(target));
  return fmt::format("POST /v2/models/{}/infer HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{}\r\n{}{}",
                     target.model, target.host, text.size() + tensors.size(), headers, text, tensors);
}

}  // namespace superstep::edge
