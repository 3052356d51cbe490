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
#include <vector>

#pragma GCC visibility push(default)

namespace poplar {

namespace core {
struct TargetData;
}

struct GlobalExchangeFlow {
  unsigned src, dst;
  GlobalExchangeFlow(unsigned source, unsigned destination) : src(source), dst(destination) {}
};

struct GlobalExchangeConstraint {
  double bandwidth;  // bits a second
  std::vector<GlobalExchangeFlow> flows;
  GlobalExchangeConstraint(double bitsPerSecond, std::vector<GlobalExchangeFlow> theFlows)
      : bandwidth(bitsPerSecond), flows(theFlows) {}
};

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
  std::size_t getTypeSize(const Type& type) const;  // bytes
  unsigned getWeightsPerConvUnit(bool floatActivations) const;
  unsigned getConvUnitCoeffLoadBytesPerCycle() const;
  unsigned getFp16InFp16OutConvUnitsPerTile() const;
  unsigned getFp16InFp32OutConvUnitsPerTile() const;
  unsigned getFp32InFp32OutConvUnitsPerTile() const;
  unsigned getRptCountMax() const;
  unsigned getNumStrideBits() const;
  std::size_t getAtomicStoreGranularity() const;  // bytes
  unsigned getTilesPerSharedExchangeBus() const;
  unsigned getFp16ConvUnitInputLoadElemsPerCycle() const;
  unsigned getFp32ConvUnitInputLoadElemsPerCycle() const;
  unsigned getConvUnitInputLoadElemsPerCycle(bool floatActivations) const {
    return floatActivations ? getFp32ConvUnitInputLoadElemsPerCycle()
                            : getFp16ConvUnitInputLoadElemsPerCycle();
  }
  unsigned getConvUnitMaxPipelineDepth(const Type& partials) const;
  unsigned getMinIPUSyncDelay() const;  // cycles of a barrier within a chip
  unsigned getMaxIPUSyncDelay() const;
  std::vector<unsigned> getMemoryElementOffsets() const;  // bytes where the elements of a tile's memory begin
  unsigned getInterleavedMemoryElementIndex() const;      // the first whose neighbours are interleaved
  std::vector<GlobalExchangeConstraint> getGlobalExchangeConstraints() const;  // of a link between two chips
  double getTypeLimitsMaxAs(const Type& type) const;
  double getTypeLimitsLowestAs(const Type& type) const;
  bool supportsExchangeBusSharing() const;

  Target createVirtualTarget(unsigned numIPUs, unsigned tilesPerIPU) const;
  static Target createCPUTarget(bool accurateHalf = false, unsigned numIPUs = 1);
  static Target createIPUTarget(unsigned numIPUs, StringRef systemType, const OptionFlags& options = {});
  static Target createIPUTarget(unsigned numIPUs, unsigned tilesPerIPU, StringRef systemType,
                                const OptionFlags& options = {});

  friend bool operator==(const Target& a, const Target& b) { return a.equals(b); }
  friend bool operator!=(const Target& a, const Target& b) { return !a.equals(b); }
  friend bool operator<(const Target& a, const Target& b) { return a.isBefore(b); }  // some order, for maps

  explicit Target(std::shared_ptr<const core::TargetData> data);  // of the library
  const core::TargetData& data() const;

 private:
  bool equals(const Target& other) const;
  bool isBefore(const Target& other) const;
  std::shared_ptr<const core::TargetData> data_;
};

// Halves of the device, 16 bits each, and numbers of the host: to nearest, ties to even; too large is
// infinite.
void copyFloatToDeviceHalf(const Target& target, const float* source, void* destination, std::size_t count);
void copyDeviceHalfToFloat(const Target& target, const void* source, float* destination, std::size_t count);
void copyDoubleToDeviceHalf(const Target& target, const double* source, void* destination, std::size_t count);
void copyDeviceHalfToDouble(const Target& target, const void* source, double* destination, std::size_t count);

}  // namespace poplar

#pragma GCC visibility pop

#endif
