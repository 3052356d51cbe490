// Reports that engines have written (autoReport.all), read again.
#ifndef pva_pva_hpp
#define pva_pva_hpp

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace pva {

struct ReportData;

// What a file that is no report is refused by.
class Exception : public std::runtime_error {
 public:
  explicit Exception(const std::string& text);
  ~Exception() override;
};

class PoplarVersion {
 public:
  explicit PoplarVersion(std::string text) : text_(std::move(text)) {}
  const std::string& string() const { return text_; }

 private:
  std::string text_;
};

class Target {
 public:
  explicit Target(std::shared_ptr<const ReportData> data) : data_(std::move(data)) {}
  std::string architecture() const;
  std::uint64_t numIPUs() const;
  std::uint64_t tilesPerIpu() const;
  std::uint64_t numTiles() const;
  std::uint64_t numReplicas() const;
  std::uint64_t bytesPerTile() const;
  double clockFrequency() const;  // Hz

 private:
  std::shared_ptr<const ReportData> data_;
};

class Graph {
 public:
  explicit Graph(std::shared_ptr<const ReportData> data) : data_(std::move(data)) {}
  std::uint64_t numVars() const;
  std::uint64_t numConstants() const;
  std::uint64_t numVertices() const;
  std::uint64_t numEdges() const;
  std::uint64_t numComputeSets() const;

 private:
  std::shared_ptr<const ReportData> data_;
};

// Bytes of one tile.
struct TileMemory {
  std::uint64_t excludingGaps, includingGaps, alwaysLive, notAlwaysLive;
};

class Compilation {
 public:
  explicit Compilation(std::shared_ptr<const ReportData> data) : data_(std::move(data)) {}
  Graph graph() const { return Graph(data_); }
  Target target() const { return Target(data_); }
  std::vector<TileMemory> tiles() const;

 private:
  std::shared_ptr<const ReportData> data_;
};

class Program {
 public:
  Program(std::string name, std::string type) : name_(std::move(name)), type_(std::move(type)) {}
  const std::string& name() const { return name_; }
  const std::string& type() const { return type_; }  // "OnTileExecute", "DoExchange", "StreamCopy" ...

 private:
  std::string name_, type_;
};

// One step as it ran. The model has one time for all tiles: a block is of the whole step.
class Block {
 public:
  Block(std::uint64_t from, std::uint64_t to, std::uint64_t tileNumber, std::shared_ptr<const Program> of)
      : cyclesFrom(from), cyclesTo(to), tile(tileNumber), program_(std::move(of)) {}
  const std::shared_ptr<const Program>& program() const { return program_; }
  bool isStreamCopy() const { return program_->type() == "StreamCopy"; }
  std::uint64_t cyclesFrom, cyclesTo, tile;

 private:
  std::shared_ptr<const Program> program_;
};

class Execution {
 public:
  explicit Execution(std::shared_ptr<const ReportData> data) : data_(std::move(data)) {}
  std::uint64_t totalCycles() const;
  std::vector<Block> blocks(std::uint64_t tile = 0) const;

 private:
  std::shared_ptr<const ReportData> data_;
};

class Report {
 public:
  explicit Report(std::shared_ptr<const ReportData> data) : data_(std::move(data)) {}
  PoplarVersion poplarVersion() const;
  Compilation compilation() const { return Compilation(data_); }
  Execution execution() const { return Execution(data_); }

 private:
  std::shared_ptr<const ReportData> data_;
};

// Throws Exception, naming the file, where there is none or it is no report of this version.
Report openReport(const std::string& path);
// Of a report's text.
Report parseReport(const std::string& text);

}  // namespace pva

#pragma GCC visibility pop

#endif
