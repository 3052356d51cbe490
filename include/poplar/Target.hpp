// What a program may ask about the machine that it is compiled for.
#ifndef poplar_Target_hpp
#define poplar_Target_hpp

#include <cstdint>
#include <memory>
#include <poplar/OptionFlags.hpp>
#include <poplar/StringRef.hpp>
#include <poplar/TargetType.hpp>
#include <poplar/Type.hpp>
#include <string>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct TargetData;
}

// Numbers of a modelled machine. A default-constructed target has no machine: every question is a
// poplar_error.
class Target {
 public:
  Target();
  ~Target();
  Target(const Target&);
  Target(Target&&) noexcept;
  Target& operator=(const Target&);
  Target& operator=(Target&&) noexcept;

  TargetType getTargetType() const;
  std::string getTargetArchString() const;  // "ipu1", "ipu2", "cpu"
  unsigned getNumIPUs() const;
  unsigned getTilesPerIPU() const;
  unsigned getNumTiles() const;
  unsigned getNumWorkerContexts() const;
  unsigned getBytesPerTile() const;
  unsigned getExchangeBytesPerCycle() const;  // a tile, one way
  unsigned getMemcpyBytesPerCycle() const;    // on a tile
  double getTileClockFrequency() const;       // Hz
  unsigned getDataPathWidth() const;          // bits
  unsigned getVectorWidth(const Type& type) const;
  unsigned getFloatVectorWidth() const { return getVectorWidth(FLOAT); }
  unsigned getHalfVectorWidth() const { return getVectorWidth(HALF); }
  unsigned getTypeSize(const Type& type) const;  // bytes
  unsigned getWeightsPerConvUnit(bool floatActivations) const;
  unsigned getConvUnitCoeffLoadBytesPerCycle() const;
  unsigned getFp16InFp16OutConvUnitsPerTile() const;
  unsigned getFp16InFp32OutConvUnitsPerTile() const;
  unsigned getFp32InFp32OutConvUnitsPerTile() const;
  unsigned getRptCountMax() const;
  unsigned getNumStrideBits() const;
  unsigned getAtomicStoreGranularity() const;  // bytes
  unsigned getTilesPerSharedExchangeBus() const;
  bool supportsExchangeBusSharing() const;

  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;
  static Target createCPUTarget(bool accurateHalf = false, unsigned numIPUs = 1);
  static Target createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& options = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& options = {});

  friend bool operator==(const Target& a, const Target& b) { return a.equals(b); }
  friend bool operator!=(const Target& a, const Target& b) { return !a.equals(b); }

  explicit Target(std::shared_ptr<const core::TargetData> data);  // of the library
  const core::TargetData& data() const;

 private:
  bool equals(const Target& other) const;
  std::shared_ptr<const core::TargetData> data_;
};

}  // namespace poplar

#pragma GCC visibility pop

#endif
