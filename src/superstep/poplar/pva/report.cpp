#include <nlohmann/json.hpp>
#include <pva/pva.hpp>

#include "superstep/base/error.h"
#include "superstep/base/file.h"
#include "superstep/base/json.h"

namespace pva {

using Json = nlohmann::json;

struct ReportData {
  std::string path;
  Json json;

  // The value at this place; a report is looked at piece by piece, and each piece may be missing.
  template <class T>
  T at(const char* place) const {
    try {
      return json.at(Json::json_pointer(place)).get<T>();
    } catch (const Json::exception&) {
      throw Exception(path + ": the report has no " + place);
    }
  }
};

Exception::Exception(const std::string& text) : std::runtime_error(text) {}
Exception::~Exception() = default;

std::string Target::architecture() const {
  return data_->at<std::string>("/graphProfile/target/architecture");
}
std::uint64_t Target::numIPUs() const { return data_->at<std::uint64_t>("/graphProfile/target/numIPUs"); }
std::uint64_t Target::tilesPerIpu() const {
  return data_->at<std::uint64_t>("/graphProfile/target/tilesPerIpu");
}
std::uint64_t Target::numTiles() const { return data_->at<std::uint64_t>("/graphProfile/target/numTiles"); }
std::uint64_t Target::numReplicas() const {
  return data_->at<std::uint64_t>("/graphProfile/target/numReplicas");
}
std::uint64_t Target::bytesPerTile() const {
  return data_->at<std::uint64_t>("/graphProfile/target/bytesPerTile");
}
double Target::clockFrequency() const { return data_->at<double>("/graphProfile/target/clockFrequency"); }

std::uint64_t Graph::numVars() const { return data_->at<std::uint64_t>("/graphProfile/graph/numVars"); }
std::uint64_t Graph::numConstants() const {
  return data_->at<std::uint64_t>("/graphProfile/graph/numConstants");
}
std::uint64_t Graph::numVertices() const {
  return data_->at<std::uint64_t>("/graphProfile/graph/numVertices");
}
std::uint64_t Graph::numEdges() const { return data_->at<std::uint64_t>("/graphProfile/graph/numEdges"); }
std::uint64_t Graph::numComputeSets() const {
  return data_->at<std::uint64_t>("/graphProfile/graph/numComputeSets");
}

std::vector<TileMemory> Compilation::tiles() const {
  using Bytes = std::vector<std::uint64_t>;
  const auto total = data_->at<Bytes>("/graphProfile/memory/byTile/total");
  const auto gaps = data_->at<Bytes>("/graphProfile/memory/byTile/totalIncludingGaps");
  const auto always = data_->at<Bytes>("/graphProfile/memory/liveness/alwaysLive/bytesByTile");
  const auto other = data_->at<Bytes>("/graphProfile/memory/liveness/notAlwaysLive/maxBytesByTile");
  if (gaps.size() != total.size() || always.size() != total.size() || other.size() != total.size())
    throw Exception(data_->path + ": the report's lists of tiles are not of one length");
  std::vector<TileMemory> tiles;
  for (std::size_t i = 0; i < total.size(); ++i) tiles.push_back({total[i], gaps[i], always[i], other[i]});
  return tiles;
}

std::uint64_t Execution::totalCycles() const {
  return data_->at<std::uint64_t>("/executionProfile/simulation/cycles");
}

std::vector<Block> Execution::blocks(std::uint64_t tile) const {
  std::vector<Block> blocks;
  for (const Json& step : data_->at<Json>("/executionProfile/simulation/steps")) {
    const ReportData one{data_->path, step};
    blocks.emplace_back(
        one.at<std::uint64_t>("/cyclesFrom"), one.at<std::uint64_t>("/cyclesTo"), tile,
        std::make_shared<const Program>(one.at<std::string>("/name"), one.at<std::string>("/type")));
  }
  return blocks;
}

PoplarVersion Report::poplarVersion() const {
  return PoplarVersion(data_->at<std::string>("/poplarVersion"));
}

namespace {

// `path`: where it is from, for messages.
Report report_of(const std::string& path, Json json) {
  ReportData data{path, std::move(json)};
  if (data.json.is_discarded() || !data.json.is_object() ||
      data.json.value("format", Json()) != "superstep-poplar-report")
    throw Exception(path + ": this is no report");
  if (data.json.value("version", Json()) != 1) throw Exception(path + ": a report of another version");
  return Report(std::make_shared<const ReportData>(std::move(data)));
}

}  // namespace

Report openReport(const std::string& path) {
  std::string text;
  try {
    text = superstep::read_text_file(path);
  } catch (const superstep::Error& error) {
    if (error.code() != superstep::ErrorCode::not_found) throw Exception(error.what());
    throw Exception(path + ": there is no such report (run the program with autoReport.all)");
  }
  return report_of(path, superstep::parse_json(text));
}

Report parseReport(const std::string& text) { return report_of("the report", superstep::parse_json(text)); }

}  // namespace pva
