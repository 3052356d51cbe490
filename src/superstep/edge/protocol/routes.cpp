#include "superstep/edge/protocol/routes.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "superstep/base/text.h"
#include "superstep/edge/protocol/datatype.h"
#include "superstep/edge/protocol/infer_codec.h"
#include "superstep/edge/protocol/live_page.h"
#include "superstep/edge/protocol/metrics.h"
#include "superstep/edge/protocol/openapi.h"
#include "superstep/edge/protocol/path.h"
#include "superstep/edge/protocol/status_page.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

using status::method_not_allowed, status::not_found, status::unavailable;

HttpResponse json_response(const json& value) { return {.body = value.dump()}; }

// --- what is read

json ports_json(const std::vector<ServedPort>& ports, bool batched) {
  json list = json::array();
  for (const ServedPort& port : ports) {
    std::vector<std::int64_t> shape = port.shape.extents();
    if (batched) shape.insert(shape.begin(), -1);
    list.push_back({{"name", port.name}, {"datatype", datatype_of(port.element)}, {"shape", shape}});
  }
  return list;
}

json metadata(const ModelService& model, const Version& version) {
  json versions = json::array({version.id()});
  if (const auto former = model.former(); former && former->id() != version.id())
    versions.push_back(former->id());
  return {{"name", model.name()},
          {"versions", versions},
          {"platform", "superstep"},
          {"inputs", ports_json(version.ports().inputs, version.ports().batched)},
          {"outputs", ports_json(version.ports().outputs, version.ports().batched)}};
}

// As Triton's clients read it, with max_batch_size.
json configuration(const ModelService& model, const Version& version) {
  const auto ports = [](const std::vector<ServedPort>& all) {
    json list = json::array();
    for (const ServedPort& port : all)
      list.push_back({{"name", port.name},
                      {"data_type", fmt::format("TYPE_{}", datatype_of(port.element))},
                      {"dims", port.shape.extents()}});
    return list;
  };
  return {{"name", model.name()},
          {"platform", "superstep"},
          {"max_batch_size", version.ports().batched ? version.max_batch() : 0},
          {"parameters",
           {{"version", {{"string_value", version.id()}}}, {"sha256", {{"string_value", version.digest()}}}}},
          {"input", ports(version.ports().inputs)},
          {"output", ports(version.ports().outputs)}};
}

json tally_json(std::uint64_t count, std::uint64_t nanoseconds) {
  return {{"count", count}, {"ns", nanoseconds}};
}
json tally_json(const Durations& times) { return tally_json(times.count(), times.nanoseconds()); }

// Compute is of batches: a request's share is not told apart.
json statistics(const ModelService& model) {
  const Account account = model.batcher().account();
  const ServiceTimes times = model.batcher().times();
  json batches = json::array();
  for (const auto& [rows, durations] : times.by_rows)
    batches.push_back({{"batch_size", rows}, {"compute_infer", tally_json(durations)}});
  std::uint64_t unserved = 0;
  json outcomes = json::object();
  for (const Outcome outcome : all_outcomes) {
    const Tally& tally = account.of(outcome);
    outcomes[name_of(outcome)] = {{"requests", tally.requests}, {"rows", tally.rows}};
    if (outcome != Outcome::served) unserved += tally.requests;
  }
  const auto version = model.current();
  return {{"name", model.name()},
          {"version", version ? version->id() : ""},
          {"inference_count", account.of(Outcome::served).rows},
          {"execution_count", times.compute.count()},
          {"inference_stats",
           {{"success", tally_json(times.total)},
            {"fail", tally_json(unserved, 0)},
            {"queue", tally_json(times.queue)},
            {"compute_infer", tally_json(times.compute)}}},
          {"batch_stats", batches},
          {"account",
           {{"received", {{"requests", account.received.requests}, {"rows", account.received.rows}}},
            {"waiting", account.waiting.requests},
            {"running", account.running.requests},
            {"outcomes", outcomes}}}};
}

json index_of(const Repository& repository) {
  json list = json::array();
  for (const auto& [name, model] : repository.models()) {
    const auto version = model->current();
    list.push_back({{"name", name},
                    {"version", version ? version->id() : ""},
                    {"state", version ? "READY" : "UNAVAILABLE"},
                    {"reason", version ? "" : "unloaded"}});
  }
  return list;
}

json learning_of(const Learner& learner) {
  const Learner::State state = learner.state();
  const Learner::Counts& counts = state.counts;
  return {{"state", state.doing},
          {"failure", state.failure},
          {"drift", state.drift},
          {"counts",
           {{"scans", counts.scans},
            {"trained", counts.trained},
            {"swapped", counts.swapped},
            {"rejected", counts.rejected},
            {"failed", counts.failed},
            {"rolled_back", counts.rolled_back}}},
          {"events", learner.events()}};
}

// models/NAME[/versions/V]/VERB, taken apart.
struct ModelPath {
  std::string name, version, verb;
};

std::optional<ModelPath> model_path(const std::vector<std::string>& parts) {
  if (parts.size() < 3 || parts[0] != "v2" || parts[1] != "models") return std::nullopt;
  ModelPath path{.name = parts[2], .version = {}, .verb = {}};
  std::size_t next = 3;
  if (parts.size() > 4 && parts[3] == "versions") {
    path.version = parts[4];
    next = 5;
  }
  if (parts.size() > next + 1) return std::nullopt;
  if (parts.size() == next + 1) path.verb = parts[next];
  return path;
}

// The protocol's paths, and those that orchestrators ask.
bool is_liveness(std::string_view whole) {
  return whole == "v2/health/live" || whole == "healthz" || whole == "livez";
}
bool is_readiness(std::string_view whole) { return whole == "v2/health/ready" || whole == "readyz"; }

// Health is asked by machines that hold no token, and says nothing else.
bool is_health(std::string_view path) {
  const std::string whole = join(parts_of(path), "/");
  return is_liveness(whole) || is_readiness(whole);
}

// What is posted to change what is served; `verb` empty: it is none.
struct Change {
  std::string verb, model;
};
Change change_of(const std::vector<std::string>& parts) {
  if (parts.size() == 1 && parts[0] == "learn") return {"learn", ""};
  if (parts.size() == 5 && parts[0] == "v2" && parts[1] == "repository" && parts[2] == "models" &&
      (parts[4] == "load" || parts[4] == "unload"))
    return {parts[4], parts[3]};
  if (parts.size() == 4 && parts[0] == "v2" && parts[1] == "models" && parts[3] == "rollback")
    return {parts[3], parts[2]};
  return {};
}

Scope scope_of(const HttpRequest& request) {
  if (request.method != "POST") return Scope::read;
  const std::vector<std::string> parts = parts_of(request.path);
  const auto where = model_path(parts);
  if (where && where->verb == "infer") return Scope::infer;
  return change_of(parts).verb.empty() ? Scope::read : Scope::change;
}

}  // namespace

HttpResponse error_response(int status, std::string_view message) {
  // What came with the request may be quoted, and need not be UTF-8.
  return {.status = status,
          .body = json{{"error", message}}.dump(-1, ' ', false, json::error_handler_t::replace)};
}

namespace {

HttpResponse infer_response(Inference::Answer answer) {
  HttpResponse response;
  try {
    InferAnswer encoded = encode_infer_answer(answer.version->ports(), answer.model, answer.version->id(),
                                              answer.id, answer.wanted, answer.outputs);
    if (encoded.json_bytes) response.content_type = "application/octet-stream";
    response.body = std::move(encoded.body);
    response.json_bytes = encoded.json_bytes;
  } catch (const Error& error) {
    response = error_response(status_of(error.code()), error.what());
  }
  response.memory = std::move(answer.memory);
  return response;
}

}  // namespace

HttpResponse Routes::model_read(std::string_view path) {
  const auto where = model_path(parts_of(path));
  if (!where) throw StatusError{not_found, fmt::format("there is nothing at '{}'", path)};
  const ModelService& service = inference_.model(where->name);
  if (where->verb == "stats") return json_response({{"model_stats", json::array({statistics(service)})}});
  if (where->verb == "ready") {
    const bool ready = repository_.is_ready() && service.find(where->version) != nullptr;
    HttpResponse response = json_response({{"name", service.name()}, {"ready", ready}});
    response.status = ready ? 200 : unavailable;
    return response;
  }
  const std::shared_ptr<Version> version = Inference::version_of(service, where->version);
  if (where->verb.empty()) return json_response(metadata(service, *version));
  if (where->verb == "config") return json_response(configuration(service, *version));
  throw StatusError{not_found, fmt::format("there is nothing at '{}'", path)};
}

HttpResponse Routes::live_picture(std::string_view name) {
  for (const auto& [file, shown] : {std::pair("mean.png", Live::Shown::mean),
                                    {"spread.png", Live::Shown::spread},
                                    {"coverage.png", Live::Shown::coverage}})
    if (name == file) {
      std::string png = live_->png(shown);
      if (png.empty()) throw StatusError{not_found, "there is no picture yet"};
      return {.content_type = "image/png", .body = std::move(png)};
    }
  throw StatusError{not_found, fmt::format("there is no picture '{}'", name)};
}

HttpResponse Routes::page(const HttpRequest& request) {
  return {.content_type = "text/html; charset=utf-8",
          .body = status_page(repository_, {.host = request.host,
                                            .secure = request.secure,
                                            .needs_token = door_.tokens()->needs(Scope::infer)})};
}

HttpResponse Routes::read(const HttpRequest& request) {
  const std::string_view path = request.path;
  const std::vector<std::string> parts = parts_of(path);
  const std::string whole = join(parts, "/");
  if (whole.empty()) return page(request);
  if (whole == "v2/openapi.json") return json_response(openapi(settings_.server_version));
  if (live_ && whole == "live") return {.content_type = "text/html; charset=utf-8", .body = live_page()};
  if (learner_ && whole == "learn") return json_response(learning_of(*learner_));
  if (live_ && whole == "live/state")
    return json_response(
        live_state(*live_, repository_, settings_.stream ? settings_.stream() : std::nullopt, learner_));
  if (live_ && parts[0] == "live" && parts.size() == 2) return live_picture(parts[1]);
  if (whole == "metrics")
    return {.content_type = "text/plain; version=0.0.4",
            .body = metrics_text(repository_, settings_.stream ? settings_.stream() : std::nullopt, learner_,
                                 &door_)};
  if (whole == "v2")
    return json_response({{"name", "superstep"},
                          {"version", settings_.server_version},
                          {"extensions", {"binary_tensor_data", "model_repository", "statistics"}}});
  if (is_liveness(whole)) return json_response({{"live", true}});
  if (is_readiness(whole)) {
    const bool ready = repository_.is_ready();
    HttpResponse response = json_response({{"live", true}, {"ready", ready}});
    response.status = ready ? 200 : unavailable;
    return response;
  }
  if (whole == "v2/models/stats") {
    json all = json::array();
    for (const auto& [name, service] : repository_.models()) all.push_back(statistics(*service));
    return json_response({{"model_stats", all}});
  }
  return model_read(path);
}

std::optional<HttpResponse> Routes::admit(HttpRequest& request) const {
  if (is_health(request.path)) return std::nullopt;
  const Scope scope = scope_of(request);
  const Tokens::Judged judged = door_.tokens()->judge(request.authorization, scope);
  request.token = judged.name;
  if (judged.verdict == Tokens::Verdict::good) return std::nullopt;
  const StatusError error = refusal_of(judged.verdict, scope);
  if (scope == Scope::change)
    door_.log_change(request.peer, judged.name, request.method + " " + request.path,
                     "refused: " + error.message);
  HttpResponse response = error_response(error.status, error.message);
  response.end = RequestEnd::no_token;
  return response;
}

Lane Routes::lane(const HttpRequest& request) {
  // A text of so many bytes is read in about a millisecond, which nobody beside it notices.
  constexpr std::size_t short_text = 64 << 10;
  const Scope scope = scope_of(request);
  if (scope == Scope::change) return Lane::change;
  const bool is_long = request.json_bytes.value_or(request.body.size()) > short_text;
  return scope == Scope::infer && is_long ? Lane::parse : Lane::at_once;
}

HttpResponse Routes::change(const HttpRequest& request) {
  const std::vector<std::string> parts = parts_of(request.path);
  if (join(parts, "/") == "v2/repository/index") return json_response(index_of(repository_));
  const Change change = change_of(parts);
  if (change.verb.empty() || (change.verb == "learn" && !learner_))
    throw StatusError{not_found, fmt::format("there is nothing to post to at '{}'", request.path)};
  try {
    HttpResponse response = changed(change.verb, change.model);
    door_.log_change(request.peer, request.token, request.path, "done: " + response.body.substr(0, 200));
    return response;
  } catch (...) {
    const StatusError error = status_error(std::current_exception());
    door_.log_change(request.peer, request.token, request.path, "failed: " + error.message);
    throw error;
  }
}

HttpResponse Routes::changed(std::string_view verb, std::string_view model) {
  if (verb == "learn") {
    learner_->request();
    return json_response(learning_of(*learner_));
  }
  ModelService& service = inference_.model(model);
  bool changed = true;
  if (verb == "rollback")
    service.roll_back();
  else if (verb == "load")
    changed = service.reload();
  else
    service.unload();
  const auto version = service.current();
  return json_response(
      {{"name", service.name()}, {"version", version ? version->id() : ""}, {"changed", changed}});
}

void Routes::infer(HttpRequest request, const Reply& reply) {
  const auto where = model_path(parts_of(request.path));
  auto held = std::make_shared<MemoryBudget::Share>(std::move(request.memory));
  inference_.ask(
      {.model = where->name, .version = where->version, .deadline = {}},
      [&](const ServedPorts& ports, FunctionRef<void(std::int64_t)> admit) {
        return decode_infer_request(ports, request.body, request.json_bytes, admit);
      },
      [reply, held](Inference::Answer answer) {
        if (answer.failure) return reply(error_response(answer.failure->status, answer.failure->message));
        reply(infer_response(std::move(answer)));
      });
}

HttpResponse Routes::answer(const HttpRequest& request) {
  if (request.method == "GET" || request.method == "HEAD") return read(request);
  if (request.method == "POST") return change(request);
  throw StatusError{method_not_allowed, fmt::format("{} is not understood here", request.method)};
}

void Routes::handle(HttpRequest request, Reply reply) {
  try {
    const auto where = model_path(parts_of(request.path));
    if (request.method == "POST" && where && where->verb == "infer") return infer(std::move(request), reply);
    reply(answer(request));
  } catch (...) {
    const StatusError error = status_error(std::current_exception());
    reply(error_response(error.status, error.message));
  }
}

}  // namespace superstep::edge
