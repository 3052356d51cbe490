#include "superstep/edge/protocol/openapi.h"

#include <array>
#include <nlohmann/json.hpp>

#include "superstep/base/json.h"
#include "superstep/base/text.h"

namespace superstep::edge {
namespace {

using nlohmann::json;

// What is answered with: a schema's name, or a type of content.
struct Route {
  const char *path, *method, *summary, *answer;
  const char* failures = "";  // statuses beside 200
};

constexpr const char* of_page = "text/html";
constexpr const char* of_picture = "image/png";
constexpr const char* of_text = "text/plain";

constexpr std::array routes{
    Route{"/v2", "get", "The server: its version and extensions", "Server"},
    Route{"/v2/health/live", "get", "Whether it lives; no token is needed", "Health"},
    Route{"/v2/health/ready", "get", "Whether it answers requests; no token is needed", "Health", "503"},
    Route{"/healthz", "get", "As /v2/health/live", "Health"},
    Route{"/livez", "get", "As /v2/health/live", "Health"},
    Route{"/readyz", "get", "As /v2/health/ready", "Health", "503"},
    Route{"/v2/openapi.json", "get", "This document", "Any"},
    Route{"/v2/models/stats", "get", "Counts and times of all models", "Statistics"},
    Route{"/v2/models/{model}", "get", "A model: its versions, inputs and outputs", "Model", "404"},
    Route{"/v2/models/{model}/ready", "get", "Whether the model answers", "Ready", "404 503"},
    Route{"/v2/models/{model}/config", "get", "Its configuration, as Triton's clients read it", "Any", "404"},
    Route{"/v2/models/{model}/stats", "get", "Counts and times of the model", "Statistics", "404"},
    Route{"/v2/models/{model}/versions/{version}", "get", "The same of a version", "Model", "404"},
    Route{"/v2/models/{model}/versions/{version}/ready", "get", "Whether the version answers", "Ready",
          "404 503"},
    Route{"/v2/models/{model}/versions/{version}/config", "get", "Its configuration", "Any", "404"},
    Route{"/v2/models/{model}/infer", "post", "Asks the model", "InferAnswer",
          "400 404 411 413 429 500 503 504"},
    Route{"/v2/models/{model}/versions/{version}/infer", "post", "Asks a version", "InferAnswer",
          "400 404 411 413 429 500 503 504"},
    Route{"/v2/repository/index", "post", "The models that there are", "Index"},
    Route{"/v2/repository/models/{model}/load", "post", "Reads its source again and swaps; needs a token",
          "Changed", "404 500"},
    Route{"/v2/repository/models/{model}/unload", "post", "Gives its memory back; needs a token", "Changed",
          "404"},
    Route{"/v2/models/{model}/rollback", "post", "The version before answers again; needs a token", "Changed",
          "400 404"},
    Route{"/metrics", "get", "Counts and times for Prometheus", of_text},
    Route{"/", "get", "A page for people", of_page},
    Route{"/live", "get", "The scan as it runs (with --stitch)", of_page, "404"},
    Route{"/live/state", "get", "What that page shows (with --stitch)", "Any", "404"},
    Route{"/live/{picture}", "get", "mean.png, spread.png, coverage.png (with --stitch)", of_picture, "404"},
    Route{"/learn", "get", "What the learner did (with --learn)", "Any", "404"},
    Route{"/learn", "post", "Learn from the next scan (with --learn); needs a token", "Any", "404"},
};

constexpr const char* schemas = R"json({
  "Any": {"type": "object"},
  "Error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
  "Health": {"type": "object", "properties": {"live": {"type": "boolean"}, "ready": {"type": "boolean"}}},
  "Ready": {"type": "object", "properties": {"name": {"type": "string"}, "ready": {"type": "boolean"}}},
  "Server": {"type": "object", "required": ["name", "version", "extensions"], "properties": {
    "name": {"type": "string"}, "version": {"type": "string"},
    "extensions": {"type": "array", "items": {"type": "string"}}}},
  "Port": {"type": "object", "required": ["name", "datatype", "shape"], "properties": {
    "name": {"type": "string"}, "datatype": {"$ref": "#/components/schemas/Datatype"},
    "shape": {"type": "array", "items": {"type": "integer"}, "description": "-1: any number of rows"}}},
  "Datatype": {"type": "string", "enum": ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16",
    "INT32", "INT64", "FP16", "BF16", "FP32", "FP64"]},
  "Model": {"type": "object", "required": ["name", "versions", "platform", "inputs", "outputs"], "properties": {
    "name": {"type": "string"}, "platform": {"type": "string"},
    "versions": {"type": "array", "items": {"type": "string"}},
    "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Port"}},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Port"}}}},
  "Tensor": {"type": "object", "required": ["name", "datatype", "shape"], "properties": {
    "name": {"type": "string"}, "datatype": {"$ref": "#/components/schemas/Datatype"},
    "shape": {"type": "array", "items": {"type": "integer"}},
    "data": {"type": "array", "items": {}, "description": "the values, flat or nested"},
    "parameters": {"type": "object", "properties": {"binary_data_size": {"type": "integer",
      "description": "bytes of the tensor that follow the JSON, in place of data"}}}}},
  "InferRequest": {"type": "object", "required": ["inputs"], "properties": {
    "id": {"type": "string"},
    "parameters": {"type": "object", "properties": {
      "timeout": {"type": "integer", "description": "microseconds after which a waiting request is given up"},
      "binary_data_output": {"type": "boolean"}}},
    "inputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}},
    "outputs": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string"},
      "parameters": {"type": "object", "properties": {"binary_data": {"type": "boolean"}}}}}}}},
  "InferAnswer": {"type": "object", "required": ["model_name", "model_version", "outputs"], "properties": {
    "model_name": {"type": "string"}, "model_version": {"type": "string"}, "id": {"type": "string"},
    "outputs": {"type": "array", "items": {"$ref": "#/components/schemas/Tensor"}}}},
  "Statistics": {"type": "object", "required": ["model_stats"], "properties": {
    "model_stats": {"type": "array", "items": {"type": "object"}}}},
  "Index": {"type": "array", "items": {"type": "object", "properties": {
    "name": {"type": "string"}, "version": {"type": "string"}, "reason": {"type": "string"},
    "state": {"type": "string", "enum": ["READY", "UNAVAILABLE"]}}}},
  "Changed": {"type": "object", "properties": {
    "name": {"type": "string"}, "version": {"type": "string"}, "changed": {"type": "boolean"}}}
})json";

json reference(const std::string& schema) { return {{"$ref", "#/components/schemas/" + schema}}; }

json content_of(const std::string& answer) {
  if (answer.find('/') != std::string::npos) {
    json schema{{"type", "string"}};
    if (answer == of_picture) schema["format"] = "binary";
    return {{answer, {{"schema", schema}}}};
  }
  return {{"application/json", {{"schema", reference(answer)}}}};
}

json parameters_of(const std::string& path) {
  json list = json::array();
  for (std::size_t at = path.find('{'); at != std::string::npos; at = path.find('{', at + 1)) {
    const std::string name = path.substr(at + 1, path.find('}', at) - at - 1);
    list.push_back({{"name", name}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}});
  }
  return list;
}

bool is_infer(const Route& route) { return std::string_view(route.path).ends_with("/infer"); }

// JSON alone, or JSON with the tensors' bytes after it, which the header says the border of.
void add_request(json& operation) {
  operation["requestBody"] = {
      {"required", true},
      {"content",
       {{"application/json", {{"schema", reference("InferRequest")}}},
        {"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}}};
  operation["parameters"].push_back({{"name", "Inference-Header-Content-Length"},
                                     {"in", "header"},
                                     {"description", "bytes of JSON, where tensors follow it"},
                                     {"schema", {{"type", "integer"}}}});
}

json operation_of(const Route& route) {
  json operation{{"summary", route.summary}, {"parameters", parameters_of(route.path)}};
  operation["responses"]["200"] = {{"description", "done"}, {"content", content_of(route.answer)}};
  for (const std::string& status : split(std::string("401 403 ") + route.failures, ' '))
    if (!status.empty())
      operation["responses"][status] = {{"description", "refused, with the reason"},
                                        {"content", content_of("Error")}};
  if (is_infer(route)) add_request(operation);
  return operation;
}

}  // namespace

json openapi(const std::string& server_version) {
  json paths = json::object();
  for (const Route& route : routes) paths[route.path][route.method] = operation_of(route);
  return {{"openapi", "3.0.3"},
          {"info",
           {{"title", "superstep serve"},
            {"version", server_version.empty() ? "0" : server_version},
            {"description", "The Open Inference Protocol (KServe v2), models, metrics and pages."}}},
          {"paths", paths},
          {"security", json::array({json::object(), {{"token", json::array()}}})},
          {"components",
           {{"schemas", parse_json(schemas)},
            {"securitySchemes", {{"token", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

}  // namespace superstep::edge
